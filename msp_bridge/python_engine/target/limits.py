"""What one mutant may use, so that one that allocates, forks or writes without end harms no other.

The limits are generous: a quarter of the machine's memory for each process, more files and processes than any suite
has. Tests that need more fail in the run without a mutant, which then does without limits.
"""

from __future__ import annotations

import contextlib
import os

from .isolation import Limits

GIGABYTE = 1 << 30
PROCESSES = 1000  # at a time, threads counted
CGROUP = "/sys/fs/cgroup/memory.max"


def generous_limits() -> Limits:
    """Those of this machine, for a process that was just forked from a server: what that has mapped comes on top."""
    memory = _memory()
    with open("/proc/self/statm") as file:
        mapped = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    written = max(GIGABYTE, memory // 8)
    return Limits(
        memory=mapped + max(2 * GIGABYTE, memory // 4), processes=PROCESSES, file_size=written, written=written
    )


def _memory() -> int:
    """Bytes that this machine, or the container, has."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with contextlib.suppress(OSError, ValueError), open(CGROUP) as file:
        memory = min(memory, int(file.read()))  # ValueError: max
    return memory
