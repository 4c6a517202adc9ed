"""How a file's bytes get into the copy: shared blocks where the file system can (reflinks), else written anew.

Never hard links: a tool that writes a file in place would then write the user's file.
"""

# Paths are plain strings here, for a refresh looks at every one of the tree twice.

from __future__ import annotations

import os
import shutil
import stat
import sys
from hashlib import blake2b

if sys.platform == "linux":
    from fcntl import ioctl

FICLONE = 0x40049409  # linux/fs.h


def clone(source: str, target: str) -> str:
    """Copy a file's bytes and times to `target`, which must not exist; its owner may write it. Returns the digest.

    Raises `OSError`.
    """
    with open(source, "rb") as reader, open(target, "xb") as writer:
        if not _reflink(reader.fileno(), writer.fileno()):
            shutil.copyfileobj(reader, writer)
        status = os.fstat(reader.fileno())
    os.chmod(target, stat.S_IMODE(status.st_mode) & 0o777 | stat.S_IRUSR | stat.S_IWUSR)
    os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
    return digest_of(target)


def digest_of(file: str) -> str:
    """A digest of the file's bytes; raises `OSError`."""
    total = blake2b(digest_size=16)
    with open(file, "rb") as reader:
        while block := reader.read(1 << 20):
            total.update(block)
    return total.hexdigest()


def _reflink(reader: int, writer: int) -> bool:
    if sys.platform != "linux":
        return False
    try:
        ioctl(writer, FICLONE, reader)
    except OSError:  # another file system, or one that can't
        return False
    return True
