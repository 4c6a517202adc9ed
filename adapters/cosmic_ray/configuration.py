"""CosmicRayConfiguration: where a project's cosmic-ray TOML is, what it says, and a proposal where there is none."""

import glob
import os
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, Self

from attrs import frozen

from msp_bridge import reading
from msp_bridge.adapter import ConfigurationError, Project

NAMES = ("cosmic-ray.toml", "cosmic_ray.toml", ".cosmic-ray.toml")
TABLE = "cosmic-ray"
REQUIREMENT = "cosmic-ray>=8.7,<9"


@frozen
class CosmicRayConfiguration:
    """The table `[cosmic-ray]`. Paths are relative to the project's root, with `/`, as cosmic-ray itself takes them."""

    file: Path
    module_paths: tuple[str, ...]
    excluded: tuple[str, ...]  # globs
    test_command: tuple[str, ...]
    timeout: float  # s, for one run of the tests
    operators: Mapping[str, Any]  # operator to its sets of arguments
    filters: tuple[str, ...]  # names of the filters that have a table
    distributor: str

    @classmethod
    def read(cls, file: Path) -> Self:
        """Raises `ConfigurationError` for a file that is no TOML, or whose table lacks something or is wrong."""
        try:
            table = reading.toml(file).get(TABLE)
        except (OSError, ValueError) as error:
            raise ConfigurationError(f"{file} can't be read: {error}", "correct it") from error
        if not isinstance(table, dict):
            raise ConfigurationError(
                f"{file} has no table [{TABLE}]", f"name another file, or run `cosmic-ray new-config {file.name}`"
            )
        try:
            return cls._of(file, table)
        except KeyError as error:
            raise ConfigurationError(f"{file} lacks {error.args[0]!r} in [{TABLE}]", "add it") from error
        except (TypeError, ValueError, AttributeError) as error:
            raise ConfigurationError(f"{file} is wrong in [{TABLE}]: {error}", "correct it") from error

    @classmethod
    def _of(cls, file: Path, table: Mapping[str, Any]) -> Self:
        paths = table["module-path"]
        command = tuple(shlex.split(table["test-command"]))
        if not command:
            raise ValueError("test-command is empty")
        timeout = float(table["timeout"])
        if timeout <= 0:
            raise ValueError("timeout must be greater than 0")
        return cls(
            file=file,
            module_paths=tuple(_relative(path, file) for path in ([paths] if isinstance(paths, str) else paths)),
            excluded=tuple(str(PurePosixPath(pattern)) for pattern in table.get("excluded-modules", ())),
            test_command=command,
            timeout=timeout,
            operators=table.get("operators", {}),
            filters=tuple(table.get("filters", {})),
            distributor=table.get("distributor", {}).get("name", "local"),
        )

    def claims(self, path: str) -> bool:
        """Whether `path` is a module that would be mutated; looks at no file."""
        if not path.endswith(".py") or any(reading.matches(path, pattern) for pattern in self.excluded):
            return False
        return any(
            path == base or reading.matches(path, f"{glob.escape(base)}/**/*.py".removeprefix("./"))
            for base in self.module_paths
        )

    def modules(self, root: Path) -> list[str]:
        """Every module that would be mutated, sorted; raises `ConfigurationError` for a path that isn't there."""
        found: set[str] = set()
        for base in self.module_paths:
            if not (root / base).exists():
                raise ConfigurationError(f"module-path {base!r} in {self.file} doesn't exist", "correct it")
            if (root / base).is_file():
                found.add(base)
            else:
                found.update(_python_files(PurePosixPath(base).as_posix(), os.path.realpath(root / base), root))
        return sorted((path for path in found if self.claims(path) and (root / path).is_file()), key=PurePosixPath)


def find(project: Project) -> Path | None:
    """The file with the table `[cosmic-ray]`: the one that was named, one of the usual name, or any in the root."""
    if project.config_file is not None:
        return project.config_file if project.config_file.name in NAMES or _has_table(project.config_file) else None
    for name in NAMES:
        if (project.root / name).is_file():
            return project.root / name
    return next((file for file in sorted(project.root.glob("*.toml")) if _has_table(file)), None)


def _python_files(directory: str, real: str, root: Path, above: tuple[str, ...] = ()) -> Iterator[str]:
    """Find what `glob.glob("**/*.py", recursive=True)` finds; a link to a directory that it lies in isn't followed.

    `real` is its real path, `above` are those of the directories with the links that led here. glob goes round in
    circles there, 40 times; where there are two links, for ever.
    """
    try:
        entries = [entry for entry in os.scandir(root / directory) if not entry.name.startswith(".")]
    except OSError:  # not ours to read, or gone
        return
    for entry in entries:
        path = entry.name if directory == "." else f"{directory}/{entry.name}"
        if path.endswith(".py"):
            yield path
        if entry.is_symlink() and os.path.isdir(entry.path):
            target = os.path.realpath(entry.path)
            if not any(Path(passed).is_relative_to(target) for passed in (real, *above)):
                yield from _python_files(path, target, root, (real, *above))
        elif entry.is_dir(follow_symlinks=False):
            yield from _python_files(path, f"{real}/{entry.name}", root, above)


def _has_table(file: Path) -> bool:
    try:
        return TABLE in reading.text(file) and isinstance(reading.toml(file).get(TABLE), dict)
    except (OSError, ValueError):
        return False


def _relative(path: str, file: Path) -> str:
    """A module path as it is; an absolute one would have the user's own files mutated, wherever the tests run."""
    if Path(path).is_absolute() or ".." in PurePosixPath(path).parts:
        raise ConfigurationError(
            f"module-path {path!r} in {file} leads out of the sandbox", "write it relative to the project's root"
        )
    return str(PurePosixPath(path))


def proposal(root: Path) -> str:
    """The text of a first cosmic-ray.toml, from what the project's tree shows."""
    from msp_bridge.python_engine import likely_sources  # here: a search for projects doesn't wait for it

    modules = ", ".join(f'"{path}"' for path in likely_sources(root)) or '"CHANGE-ME"'
    has_tests_inside = any(True for pattern in ("*/tests", "src/*/tests") for _ in root.glob(pattern))
    excluded = '"**/tests/**"' if has_tests_inside else ""
    return (
        "[cosmic-ray]\n"
        f"module-path = [{modules}]\n"
        f'test-command = "{_likely_command(root)}"\n'
        "timeout = 30.0\n"
        f"excluded-modules = [{excluded}]\n\n"
        '[cosmic-ray.distributor]\nname = "local"\n'
    )


def _likely_command(root: Path) -> str:
    if (
        any(root.glob("**/test_*.py"))
        or (root / "pytest.ini").exists()
        or "pytest" in reading.table(root / "pyproject.toml").get("tool", {})
    ):
        return "python -m pytest -x -q"
    return "python -m unittest -f"
