"""File URIs, to and from paths of this machine."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import unquote, urlsplit


def path_of(uri: str) -> str | None:
    """The absolute path that a file URI names (RFC 8089); None for any other, and for what no file can be called."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    if parts.scheme != "file" or parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
        return None
    path = unquote(parts.path, errors="surrogateescape")
    if os.name == "nt":  # untested
        path = path.removeprefix("/")
    return path if "\0" not in path else None


def uri_of(path: Path) -> str:
    """The URI of an absolute path."""
    return path.as_uri()
