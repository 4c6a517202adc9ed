"""A proposal for a project's first cosmic-ray.toml, from what its tree shows."""

from __future__ import annotations

from pathlib import Path

from msp_bridge import reading

NO_PACKAGES = {
    "test",
    "tests",
    "doc",
    "docs",
    "example",
    "examples",
    "benchmark",
    "benchmarks",
    "scripts",
    "tools",
    "build",
}
SINGLE_FILES = {"setup.py", "conftest.py", "noxfile.py", "tasks.py", "manage.py"}


def proposal(root: Path) -> str:
    """The text of a cosmic-ray.toml."""
    modules = ", ".join(f'"{path}"' for path in _modules(root)) or '"CHANGE-ME"'
    return (
        "[cosmic-ray]\n"
        f"module-path = [{modules}]\n"
        f'test-command = "{_command(root)}"\n'
        "timeout = 30.0\n"
        f"excluded-modules = [{_excluded(root)}]\n\n"
        '[cosmic-ray.distributor]\nname = "local"\n'
    )


def _modules(root: Path) -> list[str]:
    for base in (root / "src", root):
        packages = sorted(file.parent for file in base.glob("*/__init__.py") if file.parent.name not in NO_PACKAGES)
        files = sorted(
            file for file in base.glob("*.py") if file.name not in SINGLE_FILES and not file.name.startswith("test")
        )
        if packages or files:
            return [path.relative_to(root).as_posix() for path in packages or files]
    return []


def _command(root: Path) -> str:
    if any(root.glob("**/test_*.py")) or (root / "pytest.ini").exists() or "pytest" in _tools(root):
        return "python -m pytest -x -q"
    return "python -m unittest -f"


def _tools(root: Path) -> set[str]:
    try:
        return set(reading.toml(root / "pyproject.toml").get("tool", {}))
    except (OSError, ValueError):
        return set()


def _excluded(root: Path) -> str:
    found = {"**/tests/**" for _ in root.glob("*/tests")} | {"**/tests/**" for _ in root.glob("src/*/tests")}
    return ", ".join(f'"{pattern}"' for pattern in sorted(found))
