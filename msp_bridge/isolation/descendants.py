"""Descendants: which processes are below this one, and the end of orphans.

On Linux this process and each worker is a "child subreaper": what a worker leaves behind becomes a child of its parent
here, however often it forked or changed its session, and never a child of init. Elsewhere only the worker's process
group is ended here; the rest is swept by the bridge when the host ends.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
from collections.abc import Collection, Iterable

from . import kernel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def adopt_orphans() -> None:
    """From now on, orphaned descendants become children of this process (Linux)."""
    kernel.prctl(kernel.SET_CHILD_SUBREAPER, 1)


def die_with_parent() -> None:
    """Be killed when the parent ends, however it ends (Linux)."""
    kernel.prctl(kernel.SET_PDEATHSIG, signal.SIGKILL)


def children(pid: int | str = "self") -> set[int]:
    """The children of this process, or of `pid` (Linux; elsewhere none are known)."""
    found: set[int] = set()
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(FileNotFoundError), open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                found.update(map(int, file.read().split()))
    return found


def cpu_seconds(roots: Iterable[int]) -> float:
    """The CPU time of these processes, of all below them, and of all that they have waited for (Linux; elsewhere 0)."""
    ticks, left = 0, list(roots)
    while left:
        pid = left.pop()
        with contextlib.suppress(OSError):  # it has ended, or belongs to another user
            with open(f"/proc/{pid}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
            ticks += sum(map(int, fields[11:15]))  # utime, stime, cutime, cstime
            left += children(pid)
    return ticks / os.sysconf("SC_CLK_TCK")


def waited_seconds() -> float:
    """How long this thread has waited for a CPU that others used (Linux; elsewhere 0)."""
    with contextlib.suppress(OSError):  # not known in each kernel
        with open("/proc/thread-self/schedstat", "rb") as file:
            return int(file.read().split()[1]) / 1e9
    return 0.0


def end_group(leader: int) -> None:
    """Kill the process group of `leader`."""
    with contextlib.suppress(ProcessLookupError, PermissionError):  # PermissionError: macOS says so of zombies
        os.killpg(leader, signal.SIGKILL)


def end_strays(known: Collection[int]) -> None:
    """Kill and reap every child that isn't `known`, and then what was below it, until none is left."""
    while strays := children().difference(known):
        for pid in strays:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        reap(strays)


def reap(pids: Iterable[int]) -> None:
    """Wait until each of the children `pids` is gone."""
    for pid in pids:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)


def end_as(code: int) -> NoReturn:
    """End this process as a child has ended: `code` is what `os.waitstatus_to_exitcode` says of it."""
    if code < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))  # it has left one
        if -code not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code if code >= 0 else 128 - code)


def kernel_threads() -> int:
    """The threads of this process that the kernel knows of; where it can't be asked, threads that Python knows."""
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        import threading  # here: where the kernel can be asked no command waits for it

        return threading.active_count()
