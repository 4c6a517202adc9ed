"""Viewer: where a page gets the standard viewer from, a local npm install or a public CDN.

https://github.com/stryker-mutator/mutation-testing-elements/tree/master/packages/elements
"""

from __future__ import annotations

import base64
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

PACKAGE = "mutation-testing-elements"
SCRIPT = Path("dist") / "mutation-test-elements.js"
OLDEST = 2  # the major version of a local install from which on it can show results as they come
VERSION = "3.9.0"  # the one that is taken from the CDN
URL = f"https://cdn.jsdelivr.net/npm/{PACKAGE}@{VERSION}/{SCRIPT.as_posix()}"
INTEGRITY = "sha384-/dXYuoYRvO6rJ0FNtdKR+Hmq5iGrkkSDpc/TGgbSoReog26ZqhLhpSt4l+0Wwew2"  # of that file in npm's tarball


@frozen
class Viewer:
    """A script that defines the element `mutation-test-report-app`."""

    script: bytes | None = None  # None: from the CDN

    @classmethod
    def find(cls, root: Path) -> Viewer:
        """The one that npm has installed in `root`, in a directory above it, or globally; else that of the CDN."""
        for modules in _node_modules(root):
            try:
                version = json.loads((modules / PACKAGE / "package.json").read_bytes())["version"]
                if int(version.split(".")[0]) >= OLDEST:
                    return cls((modules / PACKAGE / SCRIPT).read_bytes())
            except (OSError, ValueError, KeyError, TypeError, AttributeError):
                continue  # not there, or not whole
        return cls()

    @property
    def needs_network(self) -> bool:
        """Whether a page with it shows nothing without the network."""
        return self.script is None

    @property
    def element(self) -> str:
        """The HTML that loads it, before what comes next. In a data URL no text of a script can end the element."""
        if self.script is None:
            return f'<script src="{URL}" integrity="{INTEGRITY}" crossorigin="anonymous"></script>'
        return f'<script src="data:text/javascript;base64,{base64.b64encode(self.script).decode()}"></script>'


def _node_modules(root: Path) -> Iterator[Path]:
    for directory in (root, *root.parents):
        yield directory / "node_modules"
    yield from (Path(entry) for entry in os.environ.get("NODE_PATH", "").split(os.pathsep) if entry)
    if node := shutil.which("node"):  # where `npm install --global` puts it
        prefix = Path(node).resolve().parent
        yield prefix.parent / "lib" / "node_modules"
        yield prefix / "node_modules"  # on Windows
