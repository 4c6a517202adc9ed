"""Fingerprint: whether what a workspace was opened with is still so."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from msp_bridge.reading import content
from msp_bridge.workspace.configuration import OWN_FILE, PYPROJECT


def fingerprint(root: Path, named: str | None, folders: Iterable[str] = ("",)) -> str:
    """Changes when a configuration file that decides about the workspace at `root` changes, appears or vanishes.

    `folders` are those, relative to `root`, where its projects may be; other ones make another fingerprint.
    """
    digest = hashlib.sha256()
    files = [f"{folder}{name}" for folder in folders for name in (OWN_FILE, PYPROJECT, "setup.cfg")]
    for name in (*files, named):
        if name is not None:
            digest.update(name.encode("utf-8", "surrogatepass") + b"\0" + _content(root / name) + b"\0")
    return digest.hexdigest()


def _content(file: Path) -> bytes:
    try:
        return content(file)
    except (OSError, ValueError):  # ValueError: no file can have that name
        return b""
