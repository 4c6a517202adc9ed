"""Open files, which a process shares with its forks: what one writes the others read, at an offset that all move."""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat

from . import kernel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

LARGEST_COPY = 1 << 20  # bytes of a temporary file


class OpenFile:
    """A descriptor of this process."""

    def __init__(self, number: int) -> None:
        """Raises OSError where it is closed."""
        self.number, self.status = number, os.fstat(number)
        self._flags = fcntl.fcntl(number, fcntl.F_GETFL)

    @property
    def kind(self) -> int:
        """The kind of file, such as `stat.S_IFREG`."""
        return stat.S_IFMT(self.status.st_mode)

    @property
    def is_read_only(self) -> bool:
        """Whether nothing can be written through it."""
        return self._flags & os.O_ACCMODE == os.O_RDONLY

    @property
    def has_name(self) -> bool:
        """Whether it is on the disk still, unlike a temporary file without a name."""
        return self.status.st_nlink > 0

    @property
    def is_written(self) -> bool:
        """Whether it is a file on the disk that can be written to."""
        return self.kind == stat.S_IFREG and self.has_name and not self.is_read_only

    def is_same(self, other: os.stat_result) -> bool:
        """Whether it leads to that file."""
        return os.path.samestat(self.status, other)

    def lead_to(self, new: int) -> None:
        """Have the number stand for another description, whose own number is closed."""
        os.dup2(new, self.number, inheritable=os.get_inheritable(self.number))
        os.close(new)

    @property
    def can_be_own(self) -> bool:
        """Whether `open_again` may be called."""
        if self.kind not in (stat.S_IFREG, stat.S_IFDIR) or self._flags & getattr(os, "O_PATH", 0):
            return False
        return self.has_name or self.status.st_size <= LARGEST_COPY

    @property
    def name(self) -> str:
        """The path of the file. Raises OSError."""
        return os.readlink(f"/proc/self/fd/{self.number}")

    def open_again(self, name: str) -> None:
        """Have a description of its own, of what `name` now leads to, at the same offset. Raises OSError.

        A temporary file without a name is copied.
        """
        offset = os.lseek(self.number, 0, os.SEEK_CUR)
        new = os.open(name, self._flags) if self.has_name else self._copy()
        os.lseek(new, offset, os.SEEK_SET)
        self.lead_to(new)

    def _copy(self) -> int:
        new = kernel.open_in_memory("copy")
        os.write(new, os.pread(self.number, self.status.st_size, 0))
        return new


def open_files() -> Iterator[OpenFile]:
    """Look at each descriptor of this process. Raises OSError where the system has no list of them."""
    for name in os.listdir("/dev/fd"):
        with contextlib.suppress(OSError):  # that of the listing is closed
            yield OpenFile(int(name))
