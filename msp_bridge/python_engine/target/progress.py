"""How many tests a run without mutants has come to: a number that the host shares with the processes forked from it."""

from __future__ import annotations

import mmap
import struct

FORMAT = struct.Struct("q")
_shared = mmap.mmap(-1, FORMAT.size)  # made when the host imports this, before it forks


def reset() -> None:
    """A run begins."""
    FORMAT.pack_into(_shared, 0, 0)


def note_test() -> None:
    """One more test has been run. Mutants' runs count too: nobody looks then."""
    FORMAT.pack_into(_shared, 0, tests_run() + 1)


def tests_run() -> int:
    """Since `reset`."""
    count: int = FORMAT.unpack_from(_shared, 0)[0]
    return count
