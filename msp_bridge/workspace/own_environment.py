"""The environment that the bridge runs in: whether it may be a project's, too."""

from __future__ import annotations

import functools
import importlib.metadata
import os
import re
import sysconfig

BRIDGE = "msp-bridge"
INSTALLERS = ("pip", "setuptools", "wheel")  # any environment may have them
REQUIRED = re.compile(r"[\w.-]+")  # the name at the beginning of a requirement


def is_for_the_bridge_alone() -> bool:
    """Whether nothing is installed but the bridge and what it requires, its extras included: as pipx does it."""
    sites = tuple(dict.fromkeys(sysconfig.get_path(kind) for kind in ("purelib", "platlib")))
    return _holds_only(BRIDGE, sites, tuple(map(_modified, sites)))


@functools.lru_cache(maxsize=1)
def _holds_only(name: str, sites: tuple[str, ...], _: tuple[int, ...]) -> bool:
    """For each project of a tree it is asked; looked up again when something was installed or removed."""
    found = importlib.metadata.distributions(path=list(sites))
    present = {_normal(one.metadata["Name"]): one for one in found if _is_named(one)}
    pending, due = [name, *INSTALLERS], set()
    while pending:
        if (one := _normal(pending.pop())) in due:
            continue
        due.add(one)
        required = (present[one].requires or ()) if one in present else ()
        wanted = (line for line in required if one == name or "extra ==" not in line)
        pending += [match[0] for line in wanted if (match := REQUIRED.match(line))]
    return present.keys() <= due


def _is_named(found: importlib.metadata.Distribution) -> bool:
    """An uninstall of pip's that fails leaves directories without metadata, such as `~ip-23.0.dist-info`."""
    metadata = found.metadata  # None, or nothing in it, by the version of Python
    return bool(metadata) and "Name" in metadata


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _modified(directory: str) -> int:
    try:
        return os.stat(directory).st_mtime_ns
    except OSError:
        return 0
