"""Trees of files, written for a test."""

from collections.abc import Mapping
from pathlib import Path


def written(root: Path, files: Mapping[str, str | bytes]) -> Path:
    """The directory `root` with these files, by their paths in it."""
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content if isinstance(content, bytes) else content.encode())
    return root
