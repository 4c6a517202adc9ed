"""The copy of one file, and the digest of its bytes. A refresh makes thousands of them: each system call counts."""

from __future__ import annotations

import errno
import os
import stat
import sys
from hashlib import blake2b

if sys.platform == "linux":
    from fcntl import ioctl

FICLONE = 0x40049409  # linux/fs.h
BLOCK = 1 << 20  # bytes


def clone(source: str, target: str) -> str:
    """Copy a file's bytes and times to `target`, which must not exist; its owner may write it. Returns the digest.

    Blocks are shared where the file system can (reflinks). Raises `OSError`.
    """
    reader = os.open(source, os.O_RDONLY | os.O_NONBLOCK)  # it may be a pipe by now
    try:
        status = os.fstat(reader)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is no regular file", source)
        mode = stat.S_IMODE(status.st_mode) & 0o777 | stat.S_IRUSR | stat.S_IWUSR
        writer = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        try:
            digest = None if _reflink(reader, writer) else _copied(reader, writer, status.st_size)
            masked = stat.S_IMODE(os.fstat(writer).st_mode) != mode
        finally:
            os.close(writer)
    finally:
        os.close(reader)
    if masked:
        os.chmod(target, mode)
    os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
    return digest_of(target) if digest is None else digest


def digest_of(file: str) -> str:
    """A digest of the file's bytes; raises `OSError`."""
    total = blake2b(digest_size=16)
    with open(file, "rb") as reader:
        while block := reader.read(BLOCK):
            total.update(block)
    return total.hexdigest()


def _copied(reader: int, writer: int, size: int) -> str:
    """The digest; the file may have more bytes than `size` by now."""
    digest = blake2b(digest_size=16)
    while block := os.read(reader, min(size + 1, BLOCK)):
        digest.update(block)
        rest = memoryview(block)
        while rest:
            rest = rest[os.write(writer, rest) :]
    return digest.hexdigest()


def _reflink(reader: int, writer: int) -> bool:
    if sys.platform != "linux":
        return False
    try:
        ioctl(writer, FICLONE, reader)
    except OSError:  # another file system, or one that can't
        return False
    return True
