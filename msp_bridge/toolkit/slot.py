"""Slot: a numbered directory in the cache that one process at a time may use, and the cleaning of those left behind."""

import contextlib
import errno
import fcntl
import logging
import os
import shutil
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from attrs import define

from msp_bridge.errors import ToolError

logger = logging.getLogger(__name__)

DAY = 24 * 60 * 60  # seconds


@define(eq=False)
class Slot:
    """`home/<name>-<number>`, ours while the file `home/<name>-<number>.lock` is locked.

    The operating system frees the lock when the process ends, however it ends. The lock file stays: deleting it
    would let two processes hold locks on two files of the same name. It holds the size of the slot in bytes.
    """

    directory: Path
    _lock: int  # a file descriptor, -1 when released

    @classmethod
    def claim(cls, home: Path, name: str, limit: int) -> Self:
        """The first free slot; raises `ToolError` when all are taken, or when nothing can be written there."""
        with writes_in(home):
            return cls._first(home, name, limit)

    @classmethod
    def _first(cls, home: Path, name: str, limit: int) -> Self:
        home.mkdir(parents=True, exist_ok=True)
        for number in range(limit):
            slot = cls._try(home / f"{name}-{number}")
            if slot is not None:
                try:
                    slot.directory.mkdir(exist_ok=True)
                    os.utime(slot._lock_file)
                except OSError:
                    slot.release()
                    raise
                return slot
        raise ToolError(
            f"all {limit} private copies in {home} are in use by other processes", "end one of them, or lower `jobs`"
        )

    @classmethod
    def _try(cls, directory: Path) -> Self | None:
        lock = os.open(f"{directory}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            return None
        return cls(directory, lock)

    @property
    def _lock_file(self) -> str:
        return f"{self.directory}.lock"

    def hold(self) -> None:
        """Lock it anew if the cache was deleted meanwhile, and the lock with it; raises `OSError` and `ToolError`."""
        try:
            if os.path.samestat(os.stat(self._lock_file), os.fstat(self._lock)):
                return
        except FileNotFoundError:
            os.makedirs(self.directory.parent, exist_ok=True)
        fresh = self._try(self.directory)
        if fresh is None:
            raise ToolError(
                f"the cache was deleted, and another process uses {self.directory} now", "restart the server"
            )
        os.close(self._lock)
        self._lock = fresh._lock

    def note_size(self, size: int) -> None:
        """Remember how large the slot is, in bytes, for `sweep`."""
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, str(size).encode("ascii"), 0)

    def release(self) -> None:
        """Let others use it; idempotent."""
        if self._lock >= 0:
            fcntl.flock(self._lock, fcntl.LOCK_UN)  # a process that was just forked may not have closed it yet
            os.close(self._lock)
            self._lock = -1

    @classmethod
    def sweep(cls, home: Path, *, days: float, size: int) -> None:
        """Delete the slots that nobody uses and nobody has claimed for `days`, then the oldest until `size` is kept."""
        total = 0
        for lock_file in sorted(home.glob("*.lock"), key=_last_used, reverse=True):
            directory = lock_file.with_suffix("")
            total += _noted_size(lock_file)
            stale = time.time() - _last_used(lock_file) > days * DAY or total > size
            if stale and directory.exists():
                cls._delete(directory)

    @classmethod
    def _delete(cls, directory: Path) -> None:
        slot = cls._try(directory)
        if slot is None:
            return  # in use
        try:
            erase(str(directory))
            slot.note_size(0)
        except OSError as error:
            logger.warning("the stale copy %s can't be deleted: %s", directory, error.strerror)
        finally:
            slot.release()


@contextlib.contextmanager
def writes_in(directory: Path) -> Iterator[None]:
    """A block that writes in `directory`. What fails there is raised as `ToolError`, instead of `OSError`."""
    try:
        yield
    except OSError as error:
        raise unwritable(directory, error) from error


def unwritable(directory: Path, error: OSError) -> ToolError:
    """The error for a failed write in `directory`."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return ToolError(
            f"no space left for a private copy in {directory}",
            "free some space there, or set MSP_BRIDGE_CACHE to a directory elsewhere",
        )
    return ToolError(
        f"no private copy can be made in {directory}: {error.strerror or error}",
        "set MSP_BRIDGE_CACHE to a directory elsewhere",
    )


def size_of(directory: Path) -> int:
    """Bytes of the files below it, a file with several links once."""
    sizes: dict[tuple[int, int], int] = {}
    for folder, _, names in os.walk(directory):
        for name in names:
            with contextlib.suppress(OSError):  # gone meanwhile
                status = os.lstat(os.path.join(folder, name))
                sizes[status.st_dev, status.st_ino] = status.st_size
    return sum(sizes.values())


def erase(path: str) -> None:
    """Delete whatever is at `path`, never what a link leads to, read-only directories included; raises `OSError`."""
    if os.path.islink(path) or not os.path.isdir(path):
        os.unlink(path)
        return
    # `os.walk` skips a directory that a test has locked; `shutil.rmtree` will say so if it isn't empty.
    for directory, _, _ in os.walk(path, onerror=lambda error: os.chmod(error.filename, 0o700)):
        os.chmod(directory, 0o700)
    shutil.rmtree(path)


def make_empty(directory: Path) -> None:
    """Make a private directory anew; raises `OSError`."""
    shutil.rmtree(directory, ignore_errors=True)
    os.makedirs(directory, stat.S_IRWXU, exist_ok=True)


def _last_used(lock_file: Path) -> float:
    try:
        return lock_file.stat().st_mtime
    except OSError:
        return 0.0


def _noted_size(lock_file: Path) -> int:
    try:
        return int(lock_file.read_text(encoding="ascii") or 0)
    except (OSError, ValueError):
        return 0
