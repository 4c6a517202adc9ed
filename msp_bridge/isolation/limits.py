"""Limits of one mutant, so that one that allocates, forks or writes without end harms no other.

The limits are generous: a quarter of the machine's memory for each process, more files and processes than any suite
has. Tests that need more fail in the run without a mutant, which then does without limits.

RLIMIT_NPROC counts in the user namespace, so a process that is to be limited gets one of its own (`isolation`): no
mutant's fork bomb is another's EAGAIN. The kernel spares root from it; from Linux 6.14 the pid namespace's own pid_max
stands for it.
"""

from __future__ import annotations

import contextlib
import os
import resource

GIGABYTE = 1 << 30
PROCESSES = 1000  # at a time, threads counted
CGROUP = "/sys/fs/cgroup/memory.max"
PID_MAX = "/proc/sys/kernel/pid_max"
FIRST_PID_AGAIN = 300  # the number with which a pid namespace goes on after its last one
PID_MAX_OF_NAMESPACES = (6, 14)  # the version of Linux from which each has its own


class JobLimits:
    """Limits of one mutant. None: no limit of the bridge."""

    def __init__(
        self,
        memory: int | None = None,  # bytes of address space, of each process
        processes: int | None = None,  # at a time, all of its processes and threads together
        file_size: int | None = None,  # bytes, of each file
        written: int | None = None,  # bytes written into tree, tmp and home in all; None: half of the machine's memory
    ) -> None:
        self.memory, self.processes, self.file_size, self.written = memory, processes, file_size, written

    def set_for_process(self) -> None:
        """Limit this process and the processes that it starts."""
        _lower(resource.RLIMIT_NPROC, self.processes)
        _lower(resource.RLIMIT_FSIZE, self.file_size)
        _lower(resource.RLIMIT_AS, self.memory)

    def set_for_namespace(self) -> None:
        """Limit the pid namespace that this process is in, whose /proc is mounted.

        Before Linux 6.14 the number is the whole machine's, and is left alone.
        """
        version = tuple(int(part) for part in os.uname().release.split(".")[:2] if part.isdigit())
        if self.processes is not None and version >= PID_MAX_OF_NAMESPACES:
            with contextlib.suppress(OSError), open(PID_MAX, "w") as stream:  # only root may
                stream.write(str(self.processes + FIRST_PID_AGAIN))


def generous_limits() -> JobLimits:
    """Limits of this machine for a process just forked from a server, whose own mappings come on top."""
    memory = _memory()
    with open("/proc/self/statm") as file:
        mapped = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    written = max(GIGABYTE, memory // 8)
    return JobLimits(
        memory=mapped + max(2 * GIGABYTE, memory // 4), processes=PROCESSES, file_size=written, written=written
    )


def _memory() -> int:
    """Bytes that this machine, or the container, has."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with contextlib.suppress(OSError, ValueError), open(CGROUP) as file:
        memory = min(memory, int(file.read()))  # ValueError: max
    return memory


def _lower(which: int, value: int | None) -> None:
    if value is not None:
        _, hard = resource.getrlimit(which)
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(which, (value, value))
