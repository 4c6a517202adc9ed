"""Questions: which files mutmut mutates, how it would test them, and the mutants of a text. Runs nothing.

The configuration is read as mutmut itself reads it.
"""

from __future__ import annotations

import gc
import os
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msp_bridge_in_project.python_engine.programs.channel import Channel
from mutmut import configuration
from mutmut.configuration import Config, ProcessIsolation

if TYPE_CHECKING:
    from .mutations import Mutations

NEVER = {"mutants", "node_modules", "venv", "__pycache__", "__pypackages__"}  # and whatever starts with a dot
TESTS = {"tests", "test"}


class MutmutConfiguration:
    """mutmut's configuration of the project in the current directory."""

    def __init__(self, config_file: str | None) -> None:
        self._config_file = config_file
        self._text: str | None = None

    def read(self) -> Config:
        """Anew; mutmut's own functions see it too. Raises what mutmut raises, ValueError for instance."""
        configuration.reset_config()
        original = configuration._config_reader
        if self._config_file is not None:
            configuration._config_reader = lambda: _reader_of(Path(self._config_file or ""), original)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of options that are called something else now
                config = configuration.config()
        finally:
            configuration._config_reader = original
        config.track_dependencies = False  # costs time in every call, and its result would be unused
        config.resolved_mutated_source_paths = []  # for `mutmut run` alone: the text must say nothing of the directory
        self._text = repr(config)
        return config

    @property
    def text(self) -> str:
        """The text that was read last: all that mutmut's functions see of it."""
        if self._text is None:
            self.read()
        return self._text or ""

    def unused(self) -> list[str]:
        """Options that are set and that the bridge doesn't follow."""
        config = self.read()
        return [name for name in ("mutate_only_covered_lines", "type_check_command") if getattr(config, name)]

    def files(self) -> list[str]:
        """The files to mutate, relative to the current directory, with `/`; never tests. Raises as `read` does."""
        config = self.read()
        found = {path for source in config.source_paths for path in _below(source) if config.should_mutate(path)}
        return sorted(found)


def _reader_of(file: Path, original: Callable[[], Callable[[str, Any], Any]]) -> Callable[[str, Any], Any]:
    """mutmut's reader for one file, wherever it lies: mutmut looks for pyproject.toml, in the current directory."""
    here = os.getcwd()
    with tempfile.TemporaryDirectory() as alone:
        shutil.copy(file, f"{alone}/{file.name}")
        os.chdir(alone)
        try:
            return original()
        finally:
            os.chdir(here)


def _below(source: Path) -> Iterator[str]:
    if source.is_file():
        if source.suffix == ".py" and not source.is_symlink():
            yield source.as_posix()
        return
    for directory, names, files in os.walk(source):
        within = Path(directory).relative_to(source).parts
        names[:] = [name for name in names if not (name in NEVER or name.startswith(".") or _marked(directory, name))]
        if not TESTS.isdisjoint(within):
            continue
        for name in files:
            path = Path(directory, name)
            if name.endswith(".py") and not is_test(name) and not path.is_symlink():
                yield path.as_posix()


def is_test(name: str) -> bool:
    """Whether a file of this name holds tests: a mutant of a test says nothing about the tests."""
    return name == "conftest.py" or name.startswith("test_") or name.endswith("_test.py")


def _marked(directory: str, name: str) -> bool:
    return os.path.exists(f"{directory}/{name}/pyvenv.cfg")


def serve(channel: Channel, config_file: str | None) -> None:
    """Answer the bridge until it closes the channel; the current directory is the project's root."""
    configuration, mutants = MutmutConfiguration(config_file), Mutants()
    for request in channel.messages():
        channel.send({"id": request["id"], **answer(request, configuration, mutants)})


def answer(request: dict[str, Any], configuration: MutmutConfiguration, mutants: Mutants) -> dict[str, Any]:
    """The answer to one question, which may be that there is a problem."""
    try:
        if request["do"] == "files":
            return files(configuration)
        return mutants.of(configuration, request["path"], request["text"], request.get("earlier"))
    except Exception as error:  # whatever mutmut and libcst raise: the one file, or the configuration, is at fault
        return {"problem": f"{type(error).__name__}: {error}"}


def files(configuration: MutmutConfiguration) -> dict[str, Any]:
    """The files to mutate, and what of the configuration concerns the bridge."""
    found = configuration.files()
    config = configuration.read()
    return {
        "files": found,
        "source_paths": [path.as_posix() for path in config.source_paths],
        "unused": configuration.unused(),
        "arguments": [*config.pytest_add_cli_args_test_selection, *config.pytest_add_cli_args],
        "limit": [config.timeout_constant, config.timeout_multiplier],
        "always_fresh": config.process_isolation is ProcessIsolation.FORKSERVER,
        "debug": config.debug,
        "configuration": configuration.text,
    }


class Mutants:
    """Mutants of texts, each kept for the next text of the same file."""

    def __init__(self) -> None:
        self._mutations: Mutations | None = None

    def of(self, configuration: MutmutConfiguration, path: str, text: str, earlier: Any) -> dict[str, Any]:
        """Rows of handle, mutator, start, end, replacement; offsets in `text` (code points). And the configuration.

        `earlier`: such an answer about another text of the file, and that `text`; None where there is none.
        """
        read = configuration.text
        if self._mutations is None:
            self._mutations = _mutations()
        if earlier is not None and earlier["configuration"] == read:
            self._mutations.know(path, earlier["text"], earlier["mutants"])
        rows = [
            (change.handle, change.mutator, change.start, change.end, change.replacement)
            for change in self._mutations.changes(path, text)
        ]
        return {"mutants": rows, "configuration": read}


def _mutations() -> Mutations:
    """Imported when it is needed: libcst takes its time, and who asks for the files alone doesn't wait for it."""
    gc.disable()  # a sixth of the import would be the collector's, which finds nothing
    try:
        from .mutations import Mutations
    except ImportError as error:  # the installation is at fault, and no file
        raise SystemExit(f"{type(error).__name__}: {error}") from None
    gc.freeze()
    gc.enable()
    return Mutations()
