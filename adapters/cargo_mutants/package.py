"""Package: what a project's Cargo.toml says, and whether it is part of a workspace around it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msp_bridge import reading

MANIFEST = "Cargo.toml"


def is_package(root: Path) -> bool:
    """Whether `root` has a Cargo.toml."""
    return (root / MANIFEST).is_file()


def is_member(root: Path, opened: Path | None) -> bool:
    """Whether the package at `root` belongs to a workspace around it, whose project tells of its mutants, too.

    One around the directory that the user `opened` tells nobody of anything.
    """
    if "workspace" in _manifest(root):
        return False
    around = (above for above in root.parents if opened is None or above.is_relative_to(opened))
    return any("workspace" in _manifest(directory) for directory in around)


def _manifest(directory: Path) -> dict[str, Any]:
    try:
        return reading.toml(directory / MANIFEST)
    except (OSError, ValueError):
        return {}
