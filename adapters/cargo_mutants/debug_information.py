"""Debug information: builds in kept copies go without it where no test can tell.

It takes about an eighth of the CPU of a run, and longer where little is built again. What a test can see of it are the
places in a backtrace, and the program's own file. So it stays where a source speaks of such, and where a profile or the
environment says how much there is to be. cargo-mutants' own copies have it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from msp_bridge import reading
from msp_bridge.toolkit import walk

from .installation import MANIFEST

LEFT_OUT = {"CARGO_PROFILE_DEV_DEBUG": "0"}  # also for the profile of tests, and the user's own ones, which inherit it
SETTING = re.compile(r"CARGO_PROFILE_\w+_DEBUG")
OBSERVED = re.compile(rb"backtrace|debug_?info|dwarf", re.IGNORECASE)


def without(workspace: Path, configurations: Iterable[Path]) -> Mapping[str, str | None]:
    """Return the variables for cargo, none where it must be there. `configurations` are of cargo. Blocks."""
    if any(map(SETTING.fullmatch, os.environ)):
        return {}
    files = [Path(directory, name) for directory, _, names in walk(workspace) for name in names]
    profiles = (reading.table(file).get("profile") for file in [*configurations, *files] if _has_profiles(file))
    if any(map(_is_set, profiles)):
        return {}
    sources = (reading.content_or_empty(file) for file in files if file.suffix == ".rs")
    return {} if any(map(OBSERVED.search, sources)) else LEFT_OUT


def _has_profiles(file: Path) -> bool:
    return file.name in (MANIFEST, "config.toml", "config")


def _is_set(profile: Any) -> bool:
    return isinstance(profile, dict) and ("debug" in profile or any(map(_is_set, profile.values())))
