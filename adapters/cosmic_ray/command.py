"""TestCommand: how the project's test command is run in a private copy, so that it tests the copy and nothing else."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from attrs import frozen

from .configuration import Configuration
from .script import DIRECTORY

PLUGIN = "msp_bridge_observer"
SOURCE_DIRECTORIES = ("src", "lib", "python", "source")  # what a module path may begin with that isn't a package


@frozen
class TestCommand:
    """The words of the command, and what would lead its tests to the user's tree unless it is turned to the copy."""

    words: tuple[str, ...]
    timeout: float  # s
    root: Path
    python: Path
    import_paths: tuple[str, ...]  # relative to the root, "." for itself

    @classmethod
    def of(cls, configuration: Configuration, root: Path, python: Path, imported: Iterable[str]) -> TestCommand:
        """`imported`: the directories that the project's interpreter imports from, editable installs included."""
        paths = [_import_root(root, path) for path in configuration.module_paths]
        paths += [os.path.relpath(path, root) for path in imported if Path(path).is_relative_to(root)]
        return cls(configuration.test_command, configuration.timeout, root, python, tuple(dict.fromkeys(paths)))

    def argv(self, copy: Path) -> list[str]:
        """The words, with paths into the project turned into paths into the copy where it has them.

        The copy has no virtual environments: a program in one is called by its absolute path.
        """
        program, *rest = (self._turned(word, copy) for word in self.words)
        if "/" in program and not Path(program).is_absolute() and not (copy / program).exists():
            program = str(self.root / program)
        return [program, *rest]

    def environment(self, copy: Path, report: Path, *, observed: bool, bytecode: bool) -> dict[str, str | None]:
        """Changes to our environment; `observed`: with the pytest plugin, `bytecode`: may be written."""
        theirs = [self._turned(entry, copy) for entry in _entries("PYTHONPATH")]
        ours = [str((copy / path).resolve()) for path in self.import_paths if (copy / path).is_dir()]
        changes: dict[str, str | None] = {
            "PATH": os.pathsep.join([str(self.python.parent), *_entries("PATH")]),
            "PYTHONDONTWRITEBYTECODE": None if bytecode else "1",
            "PYTHONPYCACHEPREFIX": None,
            "PYTHONHOME": None,
        }
        if (self.python.parent.parent / "pyvenv.cfg").is_file():
            changes["VIRTUAL_ENV"] = str(self.python.parent.parent)
        if observed:
            theirs.append(str(DIRECTORY / "plugin"))
            changes["PYTEST_ADDOPTS"] = f"{os.environ.get('PYTEST_ADDOPTS', '')} -p {PLUGIN}".strip()
            changes |= {
                "MSP_BRIDGE_REPORT": str(report),
                "MSP_BRIDGE_SOURCE": str(self.root),
                "MSP_BRIDGE_OBSERVED": None,
            }
        changes["PYTHONPATH"] = os.pathsep.join(dict.fromkeys([*ours, *theirs]))
        return changes

    def _turned(self, word: str, copy: Path) -> str:
        option, equals, path = word.rpartition("=")
        if path == str(self.root) or path.startswith(f"{self.root}{os.sep}"):
            turned = copy / os.path.relpath(path, self.root)
            if turned.exists():
                return f"{option}{equals}{turned}"
        return word


def _import_root(root: Path, module_path: str) -> str:
    first = module_path.split("/", 1)[0]
    is_source = first in SOURCE_DIRECTORIES and (root / first).is_dir() and not (root / first / "__init__.py").exists()
    return first if is_source else "."


def _entries(variable: str) -> Iterator[str]:
    return (entry for entry in os.environ.get(variable, "").split(os.pathsep) if entry)
