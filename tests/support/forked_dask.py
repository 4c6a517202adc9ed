"""Schedulers and workers of Dask, as forks of one process that has loaded it: by itself, each takes a second for that.

Each line of stdin asks for one, in JSON: the command, its arguments, its directory, the variables of its environment and
the file of its log. The answer is a line with its pid. With the end of stdin, or of this process by Ctrl-C, all of them end.
"""

import contextlib
import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import dask
from distributed.cli import dask_scheduler, dask_worker

COMMANDS = {"scheduler": dask_scheduler.main, "worker": dask_worker.main}
STARTED: list[int] = []


def main() -> None:
    """Until stdin ends."""
    signal.signal(signal.SIGCHLD, wait)
    try:
        for line in sys.stdin:
            start(*json.loads(line))
    finally:
        for pid in STARTED:
            with contextlib.suppress(ChildProcessError):  # it has ended
                if not os.waitpid(pid, os.WNOHANG)[0]:
                    os.kill(pid, signal.SIGKILL)


def start(*asked: Any) -> None:
    """Fork a process, and say its pid."""
    if (pid := os.fork()) == 0:
        STARTED.clear()
        become(*asked)
    STARTED.append(pid)
    print(pid, flush=True)


def wait(*_: object) -> None:
    """For those that have ended."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def become(command: str, arguments: Sequence[str], directory: str, environment: Mapping[str, str], log: str) -> None:
    """Be that command."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    dask.config.refresh()
    with open(os.devnull, "rb") as nothing, open(log, "wb") as said:
        for number, file in enumerate((nothing, said, said)):
            os.dup2(file.fileno(), number)
    COMMANDS[command](arguments)


if __name__ == "__main__":
    main()
