"""Load: busy processes beside a test, to learn whether it passes on a machine that is busy."""

from __future__ import annotations

import contextlib
import os
import signal
from typing import NoReturn

from . import descendants

PER_CPU = 2  # busy processes; a test then gets a third of a CPU


class Load:
    """Between `start` and `end` all CPUs are busy. For a process with a single thread, the host."""

    def __init__(self) -> None:
        self._processes: list[int] = []

    def start(self) -> None:
        """Idempotent. As many processes as the machine gives us."""
        with contextlib.suppress(OSError):
            while len(self._processes) < PER_CPU * (os.cpu_count() or 1):
                pid = os.fork()
                if pid == 0:
                    _be_busy()
                self._processes.append(pid)

    def end(self) -> None:
        """Idempotent."""
        for pid in self._processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        descendants.reap(self._processes)
        self._processes.clear()


def _be_busy() -> NoReturn:
    descendants.die_with_parent()
    os.closerange(0, 4096)  # the ends of the host's channels must close with the host
    parent = os.getppid()
    while os.getppid() == parent:
        pass
    os._exit(0)
