"""How the project is imported: from the sandbox, whatever the environment says of the user's tree; and what that runs.

`ImportTrace` notes which functions of the project are called, and which of its files are read as text, before the fork:
from Python 3.12 by `sys.monitoring` (PY_START, disabled for each code object after its first call), before that by the
interpreter's own counters (`code_runs`). It begins before pytest is imported: pytest may import the project itself.
"""

from __future__ import annotations

import contextlib
import os
import random
import stat
import sys
import sysconfig
import threading
import types
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

from ...isolation import descendants
from ...isolation.descriptors import OpenFile, open_files
from ...isolation.guard import shared_memory
from .audit_events import listen
from .code_runs import has_run, is_known
from .event_loops import descriptors, idle_loops
from .live_code import Key, LiveFunctions, all_nested, key
from .loaded_modules import SITES, file_of, loaded_files
from .made_files import MAKES, made_by
from .own_clock import Clock
from .own_paths import PATHS
from .process_starts import STARTS, WAYS
from .text_reads import TextReads
from .unseen_calls import note_unseen_calls

monitoring: Any = getattr(sys, "monitoring", None)  # from Python 3.12
OF_PROCESS = {"getpid", "register_at_fork"}  # names in code that does something else in a fork
OF_PYTHON = frozenset(os.path.realpath(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib"))
ARCHIVE = f"python{sys.version_info[0]}{sys.version_info[1]}.zip"
LOOKS_S = 0.05  # that looking for the file of `CallingFile` may take
TOOL = 4  # of sys.monitoring: none of the ids that it reserves for debuggers, coverage, profilers and optimizers


def enter(root: str, sandbox: str) -> None:
    """Let the sandbox, which is the current directory, take the place of `root` in `sys.path`."""
    here = os.getcwd()
    if root != here:
        sys.path[:] = [_turned(path, root, sandbox) for path in sys.path]
        for mapping in _editable_mappings():
            mapping.update({package: _turned(path, root, sandbox) for package, path in mapping.items()})
    below = [path for part in ("src", "source") if os.path.isdir(path := os.path.join(here, part))]
    ours = [here, *(path for path in below if not _comes_from_elsewhere(path, (root, here)))]
    sys.path[:] = [path for path in sys.path if path and os.path.realpath(path) not in map(os.path.realpath, ours)]
    for path in ours:
        sys.path.insert(0, path)
    if root != here:  # for the processes that tests start
        theirs = [_turned(path, root, sandbox) for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
        os.environ["PYTHONPATH"] = os.pathsep.join([*reversed(ours), *theirs])
    sys.argv = ["pytest"]
    sys.modules["__main__"] = types.ModuleType("__main__")  # multiprocessing would run ours again in its processes


def loaded_elsewhere(
    sources: Sequence[str], place: str, pythonpath: Collection[Path] = ()
) -> tuple[str, str, str] | None:
    """A module of `sources` that the tests import from another place, such as another checkout.

    Its name, the file, and the way there: "pythonpath" (pytest's setting, whose directories are given), "PYTHONPATH",
    "conftest.py" (or a test, or a plug-in), or "environment". A module at the top level may share its name with any
    installed one.
    """
    for path in sources:
        parts = path.removesuffix(".py").removesuffix("/__init__").split("/")
        for names in (parts, parts[1:]):
            name = ".".join(names)
            file = file_of(sys.modules.get(name))
            if file is None or os.path.realpath(file).startswith(place + os.sep):
                continue
            if len(names) > 1 or (parts[0] in ("src", "source") and not is_of_environment(os.path.dirname(file))):
                return name, file, _way_to(name, file, place, pythonpath)
    return None


def _way_to(name: str, file: str, place: str, pythonpath: Collection[Path]) -> str:
    """How Python comes to find a module in that file, outside of `place`."""
    parts = name.split(".") + ["__init__"] * os.path.basename(file).startswith("__init__.")
    base = Path(os.path.realpath(file)).parents[len(parts) - 1]
    if base in [path.resolve() for path in pythonpath]:
        return "pythonpath"
    if str(base) in map(os.path.realpath, os.environ.get("PYTHONPATH", "").split(os.pathsep)):
        return "PYTHONPATH"
    path = [os.path.realpath(each) for each in sys.path]
    before = path[: len(path) - path[::-1].index(place)] if place in path else ()  # `enter` has put it first
    return "conftest.py" if str(base) in before else "environment"


def _comes_from_elsewhere(directory: str, own: Collection[str]) -> bool:
    """Whether the environment has a module in `directory` from a tree of somebody else: an editable install of it.

    Then the directory does not go before that tree, so that the tests import what they import without the bridge.
    """
    names = {name.removesuffix(".py") for name in os.listdir(directory) if not name.startswith(("_", "."))}
    places = [path for path in sys.path if path and os.path.realpath(path) not in map(os.path.realpath, own)]
    found = [os.path.join(path, name) for path in places if not is_of_environment(path) for name in names]
    found = [path for path in found if os.path.isfile(f"{path}.py") or os.path.isfile(f"{path}/__init__.py")]
    found += [path for mapping in _editable_mappings() for name, path in mapping.items() if name in names]
    real = [os.path.realpath(path) for path in found]
    return any(not path.startswith(tuple(os.path.realpath(one) + os.sep for one in own)) for path in real)


def is_of_environment(path: str) -> bool:
    """Whether a directory is one of the interpreter's or of installed packages."""
    real = os.path.realpath(path)
    return is_of_python(real) or not SITES.isdisjoint(real.split(os.sep))


def is_of_python(path: str) -> bool:
    """Whether a directory, or archive, is one of the interpreter's own modules."""
    return path in OF_PYTHON or os.path.dirname(path) in OF_PYTHON or os.path.basename(path) == ARCHIVE


def _editable_mappings() -> list[dict[str, str]]:
    """setuptools' finders map the packages of an editable install to their directories."""
    found = [
        getattr(module, "MAPPING", None) for name, module in sys.modules.items() if name.startswith("__editable__")
    ]
    return [mapping for mapping in found if isinstance(mapping, dict)]


def _turned(path: str, root: str, sandbox: str) -> str:
    """A path of the user's tree, such as one of an editable install, as that of the sandbox."""
    real = os.path.realpath(path)
    if real != root and not real.startswith(root + os.sep):
        return path
    turned = os.path.join(sandbox, os.path.relpath(real, root)) if real != root else sandbox
    return turned if os.path.isdir(turned) else path


def watch_executions(filenames: Collection[str], note: Callable[[str, types.CodeType], None]) -> None:
    """Call `note` whenever code of one of the files is executed: with its name in `filenames`, and the code.

    This holds whatever executes it, also `runpy` by a relative path. Calls of functions are none.
    """

    def audit(_event: str, arguments: tuple[Any, ...]) -> None:
        if isinstance(code := arguments[0], types.CodeType) and code.co_filename[:1] != "<":
            name = code.co_filename if code.co_filename in filenames else PATHS.realpath(code.co_filename)
            if name in filenames:
                note(name, code)

    listen({"exec"}, audit)


class ImportTrace:
    """Notes the functions of the project that are called in this process while it is on."""

    def __init__(self, filenames: frozenset[str]) -> None:
        self._filenames = filenames
        self.files: set[str] = set()  # names of the files whose code was executed, also files that are no module
        self._called: dict[tuple[str, Key], Sequence[str]] = {}  # with the names in its code
        self._executed: list[tuple[str, types.CodeType]] = []  # their functions may be gone, or have other code
        self.read: set[str] = set()  # files whose source was asked for: a decorator may have inspected it
        self.lost = monitoring is None and not is_known()  # nobody can say what was called
        self.made: set[str] = set()  # paths of what was opened to be written to, and the like
        self._is_on, self._has_started = True, False  # a process
        self._calls_unseen = False
        self._shared: set[object] = set()  # when it began
        self._random: object = None  # likewise
        self._reads = TextReads(os.sep, note=self._note, hide=lambda: None)

    def start(self) -> None:
        """Begin, in all threads."""
        self._shared, self._random = _shared_with_forks(files=True), random.getstate()
        watch_executions(self._filenames, self._note_executed)
        self._reads.begin()
        listen({*STARTS, *MAKES}, self._audit)
        note_unseen_calls(self._note_unseen_calls)
        if monitoring is not None:
            monitoring.use_tool_id(TOOL, "msp-bridge")
            monitoring.register_callback(TOOL, monitoring.events.PY_START, self._start)
            monitoring.set_events(TOOL, monitoring.events.PY_START)

    def stop(self, functions: LiveFunctions) -> None:
        """End. `functions` are those of the files that are alive: something else than the import may have made some."""
        self._is_on = False
        self.keep_random_numbers()
        if monitoring is not None:
            monitoring.set_events(TOOL, 0)
            monitoring.register_callback(TOOL, monitoring.events.PY_START, None)
            monitoring.free_tool_id(TOOL)
        elif not self.lost:
            found = [(name, each) for name, code in self._executed for each in all_nested(code)]
            found += [(name, code) for name in self._filenames for code in functions.codes(name)]
            self._called.update({(name, key(code)): code.co_names for name, code in found if has_run(code)})
        self._executed.clear()  # who else holds the code of a function is of interest from now on

    def is_forkable(self) -> bool:
        """Whether each fork of this process is as good as a process that begins now and does the same.

        It has all threads then, and shares nothing with other forks, nor a file that is written to.
        """
        return descendants.kernel_threads() == 1 and not self._shares(files=True) and self.why_fresh() is None

    def why_fresh(self) -> str | None:
        """Why no fork of this process is as good as one that begins now; None: it may be."""
        if self._calls_unseen:
            return "the project traces, profiles or audits what runs when it is imported"
        if threading.active_count() > 1:  # a fork has none of them
            return "the project starts threads when it is imported"
        if self._shares(files=False):
            return "the project opens a connection, shares memory or starts a process when it is imported"
        if any(not OF_PROCESS.isdisjoint(names) for names in self._called.values()):
            return "the project asks for the number of its process, or to be called in forks, when it is imported"
        if self.lost:
            return "this Python does not say which functions were called when the project was imported"
        return None

    def _shares(self, *, files: bool) -> bool:
        """Whether forks share what their jobs can't have for themselves; or, if these count, files to write to."""
        return bool(descendants.children()) or not _shared_with_forks(files=files) <= self._shared

    def keep_random_numbers(self) -> None:
        """Where imports have seeded `random`, have forks go on with its numbers: it begins anew in each, by itself."""
        state = random.getstate()
        left = [state] if state != self._random else []
        os.register_at_fork(after_in_child=lambda: left and random.setstate(left.pop()))  # not in forks of a fork

    def has_met_nothing(self) -> bool:
        """Whether nothing of the files has been imported or read so far, nor has a process been started that may."""
        started = self._has_started or any(WAYS in name for name in sys.modules)
        return not (started or self.files or self.read or loaded_files(self._filenames))

    def ran(self, files: Collection[str]) -> int:
        """How many functions of `files` have been called so far; 0 where nobody can say it."""
        if monitoring is not None:
            return sum(name in files for name, _ in self._called)
        codes = [] if self.lost else [code for name, code in self._executed if name in files]
        return sum(has_run(each) for code in codes for each in all_nested(code))

    def called(self, filename: str) -> list[Key]:
        """The functions of the file that were called."""
        return sorted(found for name, found in self._called if name == filename)

    def _note_unseen_calls(self) -> None:
        self._calls_unseen |= self._is_on

    def _note_executed(self, name: str, code: types.CodeType) -> None:
        if self._is_on:
            self.files.add(name)
            self._executed.append((name, code))

    def _note(self, path: str) -> None:
        if self._is_on:
            self.read.update(name for name in self._filenames if os.path.realpath(name) == os.sep + path)

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        self._has_started |= event in STARTS
        if self._is_on and (path := made_by(event, arguments)) is not None:
            self.made.add(path)

    def _start(self, code: types.CodeType, _offset: int) -> object:
        if code.co_filename in self._filenames:
            self._called[code.co_filename, key(code)] = code.co_names
        return monitoring.DISABLE


def _shared_with_forks(*, files: bool) -> set[object]:
    """Places that forks of this process would all write to: sockets and the like, memory, and, if these count, files.

    The files of pytest in which it captures what is printed have no name on the disk. A job opens files again, and has
    sockets of its own for event loops that wait (`ForkServer`).
    """
    with contextlib.suppress(OSError):  # this system has no such lists
        own = set() if files else {number for loop in idle_loops() for number in descriptors(loop)}
        found = [each for each in open_files() if _is_connection(each) or (files and each.is_written)]
        return {(each.status.st_dev, each.status.st_ino) for each in found if each.number not in own} | shared_memory()
    return set()


def _is_connection(file: OpenFile) -> bool:
    return file.kind not in (stat.S_IFREG, stat.S_IFCHR, stat.S_IFDIR)


class CallingFile:
    """Finds the first test file whose import calls functions of files that were imported before it."""

    def __init__(self, trace: ImportTrace) -> None:
        self.found: str | None = None
        self._trace, self._file, self._left_s = trace, "", LOOKS_S
        self._before: frozenset[str] = frozenset()  # the files that were imported when it began
        self._ran = 0  # functions of these

    def begins(self, file: str) -> None:
        """The import of a test file is about to begin; that of the one before it has ended."""
        if self.found is not None or self._left_s <= 0:
            return
        start = Clock.perf_counter()
        if self._trace.ran(self._before) > self._ran:
            self.found = self._file
            return
        self._file, self._before = file, frozenset(self._trace.files)
        self._ran = self._trace.ran(self._before)
        self._left_s -= Clock.perf_counter() - start
