"""Starts of processes, also past the audit events: by multiprocessing, and by servers that fork for it.

That is not imported to see it: tests may ask whether it is loaded. It is watched from the import of
`multiprocessing.popen_…` on, when a process is first started in one of its ways. So are its copies, such as
multiprocess, billiard and loky, which have the same modules.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Sequence
from io import FileIO  # not `open`, which a test may have replaced: see channel.py
from typing import TYPE_CHECKING, Any

from .audit_events import listen
from .own_paths import PATHS
from .started import shebang

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

PROCESSES = "<processes>"  # stands among the files: a test that has read it has run what nobody sees, such as a process
WAYS = ".popen_"  # in the names of modules
SYSTEM = ("/bin/", "/usr/bin/")  # directories, the scripts of which run nothing of a project
SHELLS = {"sh", "ash", "bash", "csh", "dash", "fish", "ksh", "tcsh", "zsh"}
MAKERS = {"cmake", "gmake", "just", "make", "ninja", "nox", "tox"}
ENVIRONMENTS = {"conda", "hatch", "npm", "npx", "pdm", "pipenv", "pipx", "pixi", "poetry", "uv", "uvx"}
RUNNERS = SHELLS | MAKERS | ENVIRONMENTS  # of other programs, which their arguments need not show
INTERPRETERS = "_interpreters"  # from Python 3.13, which has no event for a new one
STARTS = {  # audit events; an interpreter in this process, too, imports all anew, unseen
    "cpython.PyInterpreterState_New",
    "os.exec",
    "os.fork",
    "os.forkpty",
    "os.posix_spawn",
    "os.system",
    "subprocess.Popen",
}


def note_starts(
    note: Callable[[], None], concerns: Callable[[str, Any], bool] = lambda _event, _arguments: True
) -> None:
    """Call `note` whenever a process is started, from now on, in this process and its forks.

    `concerns` gets the audit event, and its arguments, of each start but those by multiprocessing. What the hook of a
    fork shows is noted always: a start by uvloop, or one that calls a function in the child first.
    """

    def audit(event: str, arguments: tuple[Any, ...]) -> None:
        if arguments[0] == INTERPRETERS if event == "import" else concerns(event, arguments):
            note()

    listen({*STARTS, "import"}, audit)
    os.register_at_fork(before=note)
    _note_multiprocessing(note)
    if INTERPRETERS in sys.modules:
        _watch_interpreters(sys.modules[INTERPRETERS], note)


def _watch_interpreters(interpreters: Any, note: Callable[[], None]) -> None:
    create = interpreters.create

    def created(*arguments: Any, **named: Any) -> Any:
        note()
        return create(*arguments, **named)

    interpreters.create = created


def _note_multiprocessing(note: Callable[[], None]) -> None:
    watched = set[object]()

    def watch(name: str) -> bool:
        package, way, _ = name.partition(WAYS)
        base = getattr(sys.modules.get(f"{package}.process"), "BaseProcess", None) if way else None
        if base is not None and base not in watched:
            watched.add(base)
            _watch(base, note)
        return bool(way)

    def audit(_event: str, arguments: tuple[Any, ...]) -> None:
        if watch(arguments[0]):  # the process is being started
            note()

    listen({"import"}, audit)
    for name in list(sys.modules):
        watch(name)


def _watch(base: type[BaseProcess], note: Callable[[], None]) -> None:
    start = base.start

    def started(process: BaseProcess) -> None:
        note()
        start(process)

    base.start = started  # type: ignore[assignment,method-assign]


class ConcernedStarts:
    """Which programs may run the project's code or read it; `roots`: its names.

    These are Python, its programs, shells and other `RUNNERS`, scripts for one of these, and what gets the name of one,
    or a path of the project.
    """

    def __init__(self, roots: Sequence[str]) -> None:
        self.roots = tuple(sorted({os.path.join(os.path.realpath(root), "") for root in roots}))

    def concerns(self, directory: str, names: Sequence[str]) -> bool:
        """Whether a program that is started in `directory` may: `names` is the program, and its arguments.

        It may where these are not known.
        """
        if not names:
            return True
        paths = [*(name for name in names[:2] if os.sep in name), *names[2:]]
        runs_python = _may_run_python([*names, *_interpreter(directory, names[0])])
        return runs_python or any(self._leads_there(directory, path) for path in paths)

    def _leads_there(self, directory: str, argument: str) -> bool:
        path = argument.rpartition("=")[2]  # of an option
        try:
            real = PATHS.realpath(PATHS.join(directory, path))
        except ValueError:  # an argument that the kernel refuses
            return False
        return bool(path) and PATHS.join(real, "").startswith(self.roots) and PATHS.exists(real)


def names_of(executable: object, arguments: object) -> list[str]:
    """The program that `subprocess.Popen` starts, and its arguments, as the audit event has them."""
    words = [executable, *arguments] if isinstance(arguments, (list, tuple)) else [executable, arguments]
    return [os.fsdecode(word) for word in words if isinstance(word, (str, bytes, os.PathLike))]


def _interpreter(directory: str, program: str) -> list[str]:
    """The words of a script's first line, but for scripts of the system."""
    with contextlib.suppress(OSError, ValueError):
        if os.sep in program and not program.startswith(SYSTEM):
            with FileIO(PATHS.join(directory, program)) as file:
                return shebang(file)
    return []


def _may_run_python(names: Sequence[str]) -> bool:
    own = PATHS.dirname(sys.executable)
    return not RUNNERS.isdisjoint(map(PATHS.basename, names)) or any(
        "python" in PATHS.basename(name)
        or name.startswith(own + os.sep)
        or name == "-c"
        or (name and os.sep not in name and PATHS.exists(PATHS.join(own, name)))
        for name in names
    )
