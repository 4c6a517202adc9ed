"""Plug'n'Play: packages in Yarn's archives instead of `node_modules`, and how they are found from a private copy."""

from __future__ import annotations

import json
import os
import posixpath
import re
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .configuration import CORE, read_json

MAP = ".pnp.cjs"
MAPS = (MAP, ".pnp.data.json")  # the second when `pnpEnableInlining` is off
LOADER = ".pnp.loader.mjs"
LOCATION = re.compile(r'("packageLocation": ?")((?:\.\./|\./\.yarn/)[^"]*)')
CORE_LOCATION = re.compile(
    r'\["' + re.escape(CORE) + r'", ?\[[\s\\]*\["npm:[^"]+", ?\{[\s\\]*"packageLocation": ?"(?P<location>[^"]+)"'
)


def is_used(root: Path) -> bool:
    """Whether the packages of the project at `root` are installed so."""
    return (root / MAP).is_file()


def core_of(root: Path) -> tuple[Path, dict[str, Any]] | None:
    """Where @stryker-mutator/core is, perhaps in an archive, and its package.json; None when it isn't installed."""
    for name in MAPS:
        found = CORE_LOCATION.search(_text(root / name))
        if found:
            directory = Path(os.path.normpath(root / found["location"]))
            return directory, _package(directory)
    return None


def relocated(text: str, root: Path, copy: Path) -> str:
    """A map of packages for `copy`: what isn't part of the project stays where it is."""
    way = Path(os.path.relpath(root, copy)).as_posix()
    return LOCATION.sub(lambda found: f"{found[1]}{posixpath.normpath(f'{way}/{found[2]}')}/", text)


def node_options(copy: Path) -> str:
    """What Node needs to find the packages, as `yarn node` sets it."""
    options = [f"--require {json.dumps(str(copy / MAP))}"]
    if (copy / LOADER).is_file():
        options.append(f"--experimental-loader {(copy / LOADER).as_uri()}")
    return " ".join([*options, os.environ.get("NODE_OPTIONS", "")]).strip()


def write_maps(root: Path, copy: Path, names: Iterable[str] = MAPS) -> None:
    """Put the project's maps into the copy."""
    for name in names:
        if (root / name).is_file():
            text = relocated(_text(root / name), root, copy)
            if not (copy / name).is_file() or _text(copy / name) != text:
                (copy / name).unlink(missing_ok=True)
                (copy / name).write_text(text, "utf-8")


def _package(directory: Path) -> dict[str, Any]:
    archive, inner, rest = directory.as_posix().partition(".zip/")
    if not inner:
        return read_json(directory / "package.json")
    try:
        with zipfile.ZipFile(f"{archive}.zip") as packed:
            package = json.loads(packed.read(f"{rest}/package.json"))
    except (OSError, KeyError, ValueError, zipfile.BadZipFile):
        return {}
    return package if isinstance(package, dict) else {}


def _text(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except OSError:
        return ""
