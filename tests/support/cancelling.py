"""Cancels a coroutine at each of its awaits in turn, and looks at what is left: locks, processes, directories.

A cancel reaches a task where it waits. So for n = 1, 2, … the work is started anew and cancelled when it has waited n
times, until it comes to its end first. What is left must be nothing, each time.
"""

import asyncio
import contextlib
import os
import secrets
import tempfile
from collections.abc import Callable, Coroutine, Generator, Iterator
from pathlib import Path
from typing import Any, TypeVar

from msp_bridge.testing import RunningProcesses

if os.name == "posix":
    import fcntl

T = TypeVar("T")
GUARD = 2000  # awaits of one piece of work, beyond which it is taken for endless


async def cancelled(task: asyncio.Task[Any]) -> None:
    """Cancel the task; returns when it has ended."""
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


class Interrupted:
    """Awaits `work`, and cancels the task around it at the n-th time that it waits."""

    def __init__(self, work: Coroutine[Any, Any, T], at: int) -> None:
        self._work, self._at = work, at
        self.waits = 0

    def __await__(self) -> Generator[Any, Any, Any]:
        task = asyncio.current_task()
        assert task is not None
        awaiting = self._work.__await__()
        value: Any = None
        error: BaseException | None = None
        while True:
            try:
                waited_for = awaiting.send(value) if error is None else awaiting.throw(error)
            except StopIteration as end:
                return end.value
            self.waits += 1
            if self.waits == self._at:
                task.cancel()  # it is delivered where the work waits now
            value = error = None
            try:
                value = yield waited_for
            except BaseException as thrown:  # all is the work's own
                error = thrown


async def _awaited(interrupted: Interrupted) -> Any:
    return await interrupted


def locked(cache: Path) -> list[str]:
    """The sandboxes in `cache` that somebody has claimed."""
    found = []
    for file in sorted(cache.rglob("*.lock")):
        with open(file, "rb") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                found.append(file.name)
    return found


@contextlib.contextmanager
def private_temporary_directory(directory: Path) -> Iterator[Path]:
    """Where this process makes temporary files meanwhile: other tests run beside this one."""
    directory.mkdir()
    before, tempfile.tempdir = tempfile.tempdir, str(directory)
    try:
        yield directory
    finally:
        tempfile.tempdir = before


async def cancelled_everywhere(work: Callable[[], Coroutine[Any, Any, object]], cache: Path, step: int = 1) -> int:
    """Run `work` once for each of its awaits, or each `step`-th, cancelled there; returns how many awaits there are.

    The first is drawn at random, so that several runs come to all of them.

    `work` makes what it uses, and closes it however it ends: each time all is new, so that each await is reached. After
    each cancel no process of it may be left, no lock in `cache`, and no temporary file.
    """
    running = RunningProcesses()
    with private_temporary_directory(cache.parent / "temporary") as temporary:
        for at in range(1 + secrets.randbelow(step), GUARD, step):
            interrupted = Interrupted(work(), at)
            task = asyncio.create_task(_awaited(interrupted), name=f"cancelled at await {at}")
            with contextlib.suppress(asyncio.CancelledError):
                await task
            where = f"after a cancel at await {at}"
            assert await running.settled(0) == [], where
            assert list(temporary.iterdir()) == [], where
            assert locked(cache) == [], where
            if interrupted.waits < at:
                return interrupted.waits
    raise AssertionError(f"more than {GUARD} awaits")
