"""Reading a project's files, each of which may be anything: a pipe that keeps its reader waiting, too."""

import errno
import hashlib
import json
import os
import stat
import tomllib
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any


def content(file: str | Path) -> bytes:
    """Read `file`; raises OSError, also for what is no file: a FIFO, a socket, a device."""
    _check(file, os.stat(file))  # merely to open a FIFO would end a process that waits to write to it
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK)
    with open(descriptor, "rb") as opened:
        _check(file, os.fstat(descriptor))  # it may be another one by now
        return opened.read()


def digest(file: str | Path) -> str | None:
    """Identify the content of `file`, as for a mutant's `handle`; None when it is no file that can be read."""
    try:
        return digest_of(content(file))
    except (OSError, ValueError):  # ValueError: no file can have that name
        return None


def digest_of(content: bytes) -> str:
    """The `digest` of a file with that `content`."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def _check(file: str | Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it is no regular file", os.fspath(file))


def matches(path: str, pattern: str) -> bool:
    """Whether `glob.glob(pattern, recursive=True)` would find `path`: no `*` matches a leading dot."""
    return _match(path.split("/"), pattern.split("/"))


def _match(parts: Sequence[str], patterns: Sequence[str]) -> bool:
    if not patterns:
        return not parts
    if patterns[0] == "**":
        return _match(parts, patterns[1:]) or bool(
            parts and not parts[0].startswith(".") and _match(parts[1:], patterns)
        )
    if not parts or (parts[0].startswith(".") and not patterns[0].startswith(".")):
        return False
    return fnmatchcase(parts[0], patterns[0]) and _match(parts[1:], patterns[1:])


def text(file: str | Path, encoding: str = "utf-8", errors: str = "strict") -> str:
    """Line ends stay as they are. Raises OSError and UnicodeDecodeError, which is a ValueError."""
    return content(file).decode(encoding, errors)


def content_or_empty(file: str | Path) -> bytes:
    """The `content`; b"" for what can't be read."""
    try:
        return content(file)
    except OSError:
        return b""


def text_or_empty(file: str | Path, errors: str = "replace") -> str:
    """The `text`; "" for what can't be read."""
    return content_or_empty(file).decode("utf-8", errors)


def table(file: str | Path) -> dict[str, Any]:
    """The object in a JSON file, or what is in a TOML file; empty where there is none, or it can't be read."""
    try:
        value = toml(file) if Path(file).suffix in (".toml", ".lock") else json_value(file)
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def toml(file: str | Path, encoding: str = "utf-8") -> dict[str, Any]:
    """Raises OSError and ValueError."""
    written = text(file, encoding)
    try:
        return tomllib.loads(written)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def json_value(file: str | Path, encoding: str = "utf-8-sig", errors: str = "strict") -> Any:
    """Raises OSError and ValueError."""
    written = text(file, encoding, errors)
    try:
        return json.loads(written)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
