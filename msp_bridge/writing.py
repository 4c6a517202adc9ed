"""Writing files of our own, each whole or not at all: another process may read them, or end this one."""

import contextlib
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from msp_bridge.errors import CommandLineError, ConfigurationError


@contextlib.contextmanager
def writing_to(file: object, option: str | None = None) -> Iterator[None]:
    """A block that writes to `file`. Raises ConfigurationError, or CommandLineError about `option`, when it fails."""
    try:
        yield
    except OSError as error:
        problem = f"can't write {file}: {error.strerror}"
        raise ConfigurationError(problem) if option is None else CommandLineError(f"{option}: {problem}") from None


def open_private(file: Path | str) -> int:
    """A descriptor that appends to `file`, which only this user may read, also when it was there already.

    Raises OSError, also when `file` belongs to another user.
    """
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.fchmod(descriptor, 0o600)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def create(file: Path, content: str) -> None:
    """Make `file` of UTF-8, and its directory if need be. Raises OSError, as FileExistsError where it is there."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with open(file, "xb") as writer:
        try:
            writer.write(content.encode())
            writer.flush()
        except BaseException:
            os.unlink(file)
            raise


def replace_content(file: Path, content: str | bytes) -> None:
    """Make or replace `file`, and make its directory if need be; text is UTF-8. Raises OSError."""
    file.parent.mkdir(parents=True, exist_ok=True)
    descriptor, fresh = tempfile.mkstemp(dir=file.parent, prefix=f"{file.name}.", suffix=".new")
    try:
        with open(descriptor, "wb") as writer:
            writer.write(content.encode() if isinstance(content, str) else content)
        os.replace(fresh, file)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(fresh)
        raise
