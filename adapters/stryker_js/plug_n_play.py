"""Plug'n'Play: packages in Yarn's archives instead of `node_modules`, and how they are found from a private copy."""

import json
import os
import re
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from msp_bridge import reading
from msp_bridge.writing import replace_content

from .configuration import CORE
from .node_modules import Moved, stands_for

MAP = ".pnp.cjs"
MAPS = (MAP, ".pnp.data.json")  # the second when `pnpEnableInlining` is off
LOADER = ".pnp.loader.mjs"
OURS = (*MAPS, LOADER)  # what `write_maps` writes
LOCATION = re.compile(r'("packageLocation": ?")(\.{1,2}/[^"]*)')
MEMBER = re.compile(r'\["([^"]+)", ?\[[\s\\]*\["(?:virtual:[^"]+#)?workspace:([^"]+)"')
VIRTUAL = re.compile(r"(?P<base>.+)/(?P<instance>__virtual__/[^/]+)/(?P<up>\d+)/(?P<rest>.+)")  # for each set of peers
CORE_LOCATION = re.compile(
    r'\["' + re.escape(CORE) + r'", ?\[[\s\\]*\["npm:[^"]+", ?\{[\s\\]*"packageLocation": ?"(?P<location>[^"]+)"'
)


def is_used(root: Path) -> bool:
    """Whether the packages of the project at `root` are installed so."""
    return os.path.isfile(root / MAP)


def root_of(directories: Iterable[Path]) -> Path | None:
    """The first where packages are installed so."""
    return next(filter(is_used, directories), None)


def core_of(root: Path) -> tuple[Path, dict[str, Any]] | None:
    """Where @stryker-mutator/core is, perhaps in an archive, and its package.json; None when it isn't installed."""
    for name in MAPS:
        found = CORE_LOCATION.search(_map(root / name))
        if found:
            directory = Path(os.path.normpath(root / found["location"]))
            return directory, _package(directory)
    return None


def members_of(root: Path) -> dict[str, Path]:
    """The packages of the workspace at `root`, by their names."""
    found = (match for name in MAPS for match in MEMBER.finditer(_map(root / name)))
    return {match[1]: Path(os.path.normpath(root / match[2])) for match in found}


def linked_from(root: Path) -> tuple[Path, ...]:
    """The packages of `root` that are in none of its archives, links resolved."""
    places = {match[2] for name in MAPS for match in LOCATION.finditer(_map(root / name)) if ".zip/" not in match[2]}
    return tuple(sorted(Path(os.path.realpath(root / place)) for place in places))


def relocated(text: str, root: Path, place: Path, moved: Moved) -> str:
    """The map of the packages of `root` for the directory `place`: what isn't `moved` stays where it is."""

    def there(found: re.Match[str]) -> str:
        way = Path(os.path.relpath(_moved(Path(os.path.normpath(root / found[2])), moved), place)).as_posix()
        return found[1] + {".": "./"}.get(way, f"{way}/" if way.startswith("..") else f"./{way}/")

    return LOCATION.sub(there, text)


def _moved(package: Path, moved: Moved) -> Path:
    if virtual := VIRTUAL.fullmatch(package.as_posix()):
        real = Path(os.path.normpath(f"{virtual['base']}/{'../' * int(virtual['up'])}{virtual['rest']}"))
        there = _moved(real, moved)
        return package if there == real else there.parent / virtual["instance"] / "0" / there.name
    return stands_for(package, moved)


def node_options(copy: Path) -> str:
    """The options that Node needs to find the packages, as `yarn node` sets them."""
    options = [f"--require {json.dumps(str(copy / MAP))}"]
    if (copy / LOADER).is_file():
        options.append(f"--experimental-loader {(copy / LOADER).as_uri()}")
    return " ".join([*options, os.environ.get("NODE_OPTIONS", "")]).strip()


def write_maps(root: Path, place: Path, moved: Moved) -> None:
    """Put the maps of `root` where packages in `place` find them."""
    for name in OURS:
        if (root / name).is_file():
            text = relocated(_map(root / name), root, place, moved)
            if not (place / name).is_file() or _map(place / name) != text:
                replace_content(place / name, text.encode("utf-8", "surrogateescape"))


def _map(file: Path) -> str:
    return reading.text_or_empty(file, "surrogateescape")


def _package(directory: Path) -> dict[str, Any]:
    archive, inner, rest = directory.as_posix().partition(".zip/")
    if not inner:
        return reading.table(directory / "package.json")
    try:
        with zipfile.ZipFile(f"{archive}.zip") as packed:
            package = json.loads(packed.read(f"{rest}/package.json"))
    except (OSError, KeyError, ValueError, zipfile.BadZipFile):
        return {}
    return package if isinstance(package, dict) else {}
