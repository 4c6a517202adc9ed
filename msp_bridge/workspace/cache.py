"""Where the bridge keeps what belongs to a project: never in the project."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

from platformdirs import user_cache_path

VARIABLE = "MSP_BRIDGE_CACHE"


def cache_of(root: Path, opened: Path | None = None) -> Path:
    """The private directory of the project at `root`; not made yet.

    Below `$MSP_BRIDGE_CACHE`, or the user's cache directory, or, when that lies within the directory that the user
    `opened` (the project's own, unless it is nested), the temporary one.
    """
    home = Path(os.environ.get(VARIABLE) or user_cache_path("msp-bridge"))
    resolved = root.resolve()
    if home.resolve().is_relative_to((opened or root).resolve()):
        home = Path(tempfile.gettempdir()) / f"msp-bridge-{os.getuid() if hasattr(os, 'getuid') else 'user'}"
    digest = hashlib.sha256(os.fsencode(resolved)).hexdigest()[:16]
    return home.absolute() / f"{resolved.name or 'root'}-{digest}"
