"""Open files, which a process shares with its forks: what one writes the others read, at an offset that all move."""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


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
    def name(self) -> str:
        """The path of the file. Raises OSError."""
        return os.readlink(f"/proc/self/fd/{self.number}")

    def open_again(self, name: str) -> None:
        """Have a description of its own, of the file that `name` now leads to, at the same offset. Raises OSError."""
        new = os.open(name, self._flags)
        os.lseek(new, os.lseek(self.number, 0, os.SEEK_CUR), os.SEEK_SET)
        self.lead_to(new)


def open_files() -> Iterator[OpenFile]:
    """Look at each descriptor of this process. Raises OSError where the system has no list of them."""
    for name in os.listdir("/dev/fd"):
        with contextlib.suppress(OSError):  # that of the listing is closed
            yield OpenFile(int(name))
