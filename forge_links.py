"""Relative links of the documents, made absolute for readers who don't have the repository beside them.

`forge` in pyproject.toml is the one setting: the address of the repository, without a slash at its end. While it is
empty, no forge is known: a link out of the documents is shown as its text alone, and a picture not at all.
"""

from __future__ import annotations

import posixpath
import re
import tomllib
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parent
FORGE: str = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["forge-links"]["forge"]
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?!https?:|#)([^)\s]+)\)")


def absolute(text: str, folder: str, stays: Callable[[str], bool], forge: str = FORGE) -> str:
    """`text` of a document in `folder`, its relative links absolute unless the path that they lead to `stays`."""

    def replaced(link: re.Match[str]) -> str:
        path, _, anchor = link[3].partition("#")
        path = posixpath.normpath(posixpath.join(folder, path))
        if stays(path):
            return link[0]
        if not forge:
            return "" if link[1] else link[2]
        return f"{link[1]}[{link[2]}]({forge}/{'raw' if link[1] else 'blob'}/HEAD/{path}{anchor and f'#{anchor}'})"

    return LINK.sub(replaced, text)


def long_description() -> str:
    """The README as a package index shows it."""
    return absolute((ROOT / "README.md").read_text("utf-8"), "", lambda path: False)


def urls() -> dict[str, str]:
    """The addresses that the package's metadata have."""
    if not FORGE:
        return {}
    pages = {"Documentation": "docs/index.md", "Changelog": "CHANGELOG.md", "Security": "SECURITY.md"}
    return {"Source": FORGE, "Issues": f"{FORGE}/issues"} | {
        name: f"{FORGE}/blob/HEAD/{path}" for name, path in pages.items()
    }
