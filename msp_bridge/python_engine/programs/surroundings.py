"""All that a project's tests depend on besides its files, as its interpreter finds it. It imports nothing.

Installed packages are named by name and version, and by what pip notes of where they came from: a commit, an archive.
Nothing here is an absolute path, except the directories outside of the project that modules are imported from.
"""

from __future__ import annotations

import json
import os
import sys
import sysconfig
from hashlib import blake2b
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from .channel import READY, Channel
from .imports import is_of_python
from .loaded_modules import SITES


def main(options: dict[str, str]) -> None:
    """Send it for the project at `options["root"]`."""
    Channel.to_bridge().send({**READY, **surroundings(os.path.realpath(options["root"]))})


def surroundings(root: str) -> dict[str, Any]:
    """`values` are for comparing; `trees` are directories outside of `root` whose modules can be imported."""
    packages, trees, files = [], set(), {}
    for found in distributions():
        metadata = found.metadata  # it is parsed each time
        if metadata and (name := metadata["Name"]):
            origin, tree = _origin(found, root)
            packages.append([name, metadata["Version"], origin, _digest(found.read_text("entry_points.txt") or "")])
            trees.update(tree)
    for path in sys.path:
        real = os.path.realpath(path)
        if not path or Path(real).is_relative_to(root) or is_of_python(real):
            continue
        if os.path.basename(real) in SITES:
            files.update(_loose(real, root))
        elif os.path.isdir(real):
            trees.add(real)
        elif os.path.isfile(real):  # modules in an archive
            with open(real, "rb") as opened:
                files[os.path.basename(real)] = _digest(opened.read())
    values = {
        "python": sys.version,
        "implementation": sys.implementation.name,
        "platform": sysconfig.get_platform(),
        "packages": sorted(packages, key=json.dumps),
        "files": files,
    }
    return {"values": values, "trees": sorted(tree for tree in trees if not Path(tree).is_relative_to(root))}


def _origin(found: Distribution, root: str) -> tuple[Any, list[str]]:
    """Pip's note of where a package came from, and its directory if it was installed editable."""
    try:
        noted = json.loads(found.read_text("direct_url.json") or "null")
    except ValueError:
        noted = None
    if not isinstance(noted, dict) or "dir_info" not in noted:
        return noted, []
    directory = os.path.realpath(unquote(urlsplit(noted["url"]).path))
    if noted["dir_info"].get("editable"):
        return "editable", [directory]
    # A copy, of no version that means anything. That of the project itself is never tested.
    return ["copy", "" if Path(directory).is_relative_to(root) else _digest(found.read_text("RECORD") or "")], []


def _loose(site: str, root: str) -> dict[str, str]:
    """Modules and .pth files that belong to no package; what leads to the project's own place is the same anywhere."""
    found = {}
    for name in os.listdir(site):
        if name.endswith((".py", ".pth", ".egg-link")):
            try:
                with open(os.path.join(site, name), "rb") as opened:
                    found[name] = _digest(opened.read().replace(os.fsencode(root), b"."))
            except OSError:
                found[name] = ""
    return found


def _digest(content: str | bytes) -> str:
    data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    return blake2b(data, digest_size=16).hexdigest()
