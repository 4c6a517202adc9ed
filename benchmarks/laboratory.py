"""Laboratory: what the benchmarks need, set up once in a cache directory outside of the repository."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from attrs import frozen
from platformdirs import user_cache_path

HERE = Path(__file__).parent
REPOSITORY = HERE.parent
SCRIPTED = HERE / "scripted"
BIN = "Scripts" if sys.platform == "win32" else "bin"


@frozen
class RealProject:
    """A library that nobody here wrote, as its sdist on PyPI has it, with its tests."""

    name: str
    version: str
    settings: str  # the `[tool.mutmut]` that it needs
    requirements: Sequence[str] = ()  # of the library and of its tests, beside pytest
    tests: Sequence[str] = ()  # arguments of pytest, which finds them by itself elsewhere
    # Where the suite takes minutes: the path and the method whose mutants are measured, and the number of a survivor.
    function: tuple[str, str, int] | None = None


PROJECTS = {
    project.name: project
    for project in (
        RealProject("inflection", "0.5.1", 'source_paths = ["inflection"]\nalso_copy = ["test_inflection.py"]\n'),
        RealProject("cachetools", "5.5.2", 'source_paths = ["src/cachetools"]\n'),
        RealProject(
            "python-slugify",
            "5.0.2",  # the last whose sdist has the tests
            'source_paths = ["slugify"]\nalso_copy = ["test.py"]\npytest_add_cli_args_test_selection = ["test.py"]\n',
            ["text-unidecode"],
            ["test.py"],
        ),
        RealProject("h11", "0.16.0", 'source_paths = ["h11"]\ndo_not_mutate = ["h11/tests/*"]\n'),
        RealProject("itsdangerous", "2.2.0", 'source_paths = ["src/itsdangerous"]\n', ["freezegun"]),
        RealProject("toolz", "1.2.0", 'source_paths = ["toolz"]\n'),
        RealProject("jinja2", "3.1.6", 'source_paths = ["src/jinja2"]\n', ["markupsafe", "trio"]),
        RealProject(
            "networkx",
            "3.4.2",
            'source_paths = ["networkx"]\nonly_mutate = ["networkx/classes/*.py"]\ndo_not_mutate = ["*/tests/*"]\n',
            function=("networkx/classes/graph.py", "Graph.remove_nodes_from", 3),
        ),
        RealProject(
            "sympy",
            "1.14.0",
            'source_paths = ["sympy"]\nonly_mutate = ["sympy/core/*.py"]\ndo_not_mutate = ["*/tests/*"]\n'
            'pytest_add_cli_args_test_selection = ["sympy/core"]\n',
            ["mpmath"],
            ["sympy/core"],
            function=("sympy/core/containers.py", "Tuple.index", 7),
        ),
        RealProject("click", "8.5.1", 'source_paths = ["src/click"]\n'),
    )
}


class SetUpFailed(Exception):
    """Something could not be installed; the message is the installer's."""


class Laboratory:
    """Environments, node modules and copies of projects below `home`."""

    def __init__(self, home: Path | None = None) -> None:
        self.home = home or user_cache_path("msp-bridge-benchmarks")
        self.home.mkdir(parents=True, exist_ok=True)

    def bridge(self, project: RealProject, *more: str) -> Path:
        """The `msp-bridge` of an environment with mutmut, pytest, what `project` needs, and `more` packages.

        It is the bridge as the work tree has it now, installed as a user has it, not editable.
        """
        packages = ["mutmut", "cosmic-ray", "pytest", *project.requirements, *more]
        environment = self._environment(
            "-".join(["bridge", project.name, *more]), ["--constraint", REPOSITORY / "constraints.txt", *packages]
        )
        stamp = environment / "bridge"
        current = _digest(REPOSITORY / name for name in ("pyproject.toml", "msp_bridge", "adapters"))
        if not stamp.is_file() or stamp.read_text() != current:
            with tempfile.TemporaryDirectory() as copy:  # building would leave its traces in the work tree
                for name in ("msp_bridge", "adapters", "docs"):
                    shutil.copytree(REPOSITORY / name, Path(copy, name), ignore=shutil.ignore_patterns("__pycache__"))
                for name in ("pyproject.toml", "setup.py", "forge_links.py", "README.md", "LICENSE"):
                    shutil.copy(REPOSITORY / name, copy)
                _pip(environment, ["--constraint", REPOSITORY / "constraints.txt", copy])
                _pip(environment, ["--force-reinstall", "--no-deps", copy])  # the version number says nothing
            stamp.write_text(current)
        return environment / BIN / "msp-bridge"

    def pygls(self) -> Path:
        """The interpreter of an environment with pygls 2."""
        return self._environment("pygls", ["--requirement", HERE / "requirements.txt"]) / BIN / "python"

    def peer(self, project: RealProject, name: str) -> Path:
        """The interpreter of an environment with the peer `name`, pytest, and what `project` needs."""
        (peer,) = (line for line in (HERE / "peers.txt").read_text().splitlines() if line.startswith(f"{name}=="))
        return self._environment(f"{name}-{project.name}", [peer, "pytest", *project.requirements]) / BIN / "python"

    def stryker(self) -> list[str | Path]:
        """The command of StrykerJS, without npx, which would only make it slower."""
        node = shutil.which("node")
        if node is None or shutil.which("npm") is None:
            raise SetUpFailed("node and npm are needed to measure StrykerJS: install Node 20")
        modules = self.home / "node"
        lock = (HERE / "package-lock.json").read_bytes()
        installed = modules / "installed"
        if not installed.is_file() or installed.read_bytes() != lock:
            modules.mkdir(exist_ok=True)
            for name in ("package.json", "package-lock.json"):
                shutil.copy(HERE / name, modules)
            _run(["npm", "ci", "--no-audit", "--no-fund"], modules)
            installed.write_bytes(lock)
        return [node, modules / "node_modules" / "@stryker-mutator" / "core" / "bin" / "stryker.js"]

    @contextmanager
    def copy_of(self, project: RealProject) -> Iterator[Path]:
        """A fresh copy of the project, with its settings for mutmut."""
        with self.directory() as parent:
            root = parent / project.name
            shutil.copytree(self._sources(project), root)
            with (root / "pyproject.toml").open("a", encoding="utf-8") as file:
                file.write(f"\n[tool.mutmut]\n{project.settings}")
            yield root

    @contextmanager
    def instant(self, mutants: int, pause_ms: float = 0) -> Iterator[Path]:
        """A project for `instant_adapter`."""
        with self.directory() as root:
            (root / "msp-bridge.toml").write_text(
                f'adapter = "instant"\n[instant]\nmutants = {mutants}\npause_ms = {pause_ms}\n'
            )
            yield root

    @contextmanager
    def javascript(self) -> Iterator[Path]:
        """An empty project that StrykerJS can be configured in."""
        with self.directory() as root:
            (root / "package.json").write_text(json.dumps({"name": "empty", "private": True}))
            (root / "stryker.conf.json").write_text(json.dumps({"mutate": ["src/*.js"], "testRunner": "command"}))
            yield root

    @contextmanager
    def directory(self) -> Iterator[Path]:
        """An empty one, which goes with the block."""
        path = self.home / "work" / uuid.uuid4().hex[:8]
        path.mkdir(parents=True)
        try:
            yield path
        finally:
            shutil.rmtree(path)

    def _environment(self, name: str, requirements: Sequence[str | Path]) -> Path:
        """A virtual environment, made anew when its requirements have changed."""
        environment = self.home / name
        wanted = _digest(path for path in requirements if isinstance(path, Path)) + " ".join(map(str, requirements))
        stamp = environment / "requirements"
        if not stamp.is_file() or stamp.read_text() != wanted:
            _run([sys.executable, "-m", "venv", "--clear", environment], self.home)
            _pip(environment, requirements)
            stamp.write_text(wanted)
        return environment

    def _sources(self, project: RealProject) -> Path:
        """The unpacked sdist."""
        sources = self.home / "projects" / f"{project.name}-{project.version}"
        if not sources.is_dir():
            with tempfile.TemporaryDirectory(dir=self.home) as temporary:
                which = f"{project.name}=={project.version}"
                download = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
                _run([*download, "--dest", temporary, which], self.home)
                (archive,) = Path(temporary).glob("*.tar.gz")
                with tarfile.open(archive) as packed:
                    packed.extractall(temporary, filter="data")
                (unpacked,) = (path for path in Path(temporary).iterdir() if path.is_dir())
                sources.parent.mkdir(exist_ok=True)
                unpacked.rename(sources)
        return sources


def _digest(paths: Iterator[Path]) -> str:
    """Of the content of files and directories."""
    digest = hashlib.sha256()
    for path in paths:
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        for file in files:
            if file.is_file() and "__pycache__" not in file.parts:
                digest.update(os.fsencode(file) + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()


def _pip(environment: Path, arguments: Sequence[str | Path]) -> None:
    install: list[str | Path] = [
        environment / BIN / "python",
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ]
    _run([*install, *arguments], environment)


def _run(argv: Sequence[str | Path], cwd: Path) -> None:
    done = subprocess.run(argv, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SetUpFailed(f"{' '.join(map(str, argv))} failed: {(done.stderr or done.stdout)[-2000:]}")
