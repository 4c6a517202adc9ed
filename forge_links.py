"""Relative links of the documents, made absolute for readers who don't have the repository beside them.

`forge` in pyproject.toml is the one setting: the address of the repository, without a slash at its end. While it is
empty, no forge is known: a link out of the documents is shown as its text alone, and a picture not at all.

`python forge_links.py DIRECTORY` writes there what the extension for VS Code is packed of, beside its program.
"""

from __future__ import annotations

import json
import posixpath
import re
import shutil
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent
SETTINGS: dict[str, str] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["forge-links"]
FORGE = SETTINGS["forge"]
EXTENSION = "editors/vscode"
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


def extension_manifest(forge: str = FORGE) -> dict[str, Any]:
    """The manifest of the extension for VS Code as it is packed: with the addresses, without what builds it."""
    manifest: dict[str, Any] = json.loads((ROOT / EXTENSION / "package.json").read_text("utf-8"))
    del manifest["scripts"], manifest["devDependencies"]
    manifest["publisher"] = SETTINGS["publisher"]
    if forge:
        manifest["repository"] = {"type": "git", "url": f"{forge}.git"}
        manifest["bugs"] = {"url": f"{forge}/issues"}
        manifest["homepage"] = f"{forge}/blob/HEAD/docs/how-to/editors.md#vs-code"
    return manifest


def extension_readme(forge: str = FORGE) -> str:
    """The README of the extension as a marketplace shows it."""
    text = (ROOT / EXTENSION / "README.md").read_text("utf-8")
    return re.sub(r"\n{3,}", "\n\n", absolute(text, EXTENSION, lambda path: False, forge))


def write_extension(folder: Path) -> None:
    """Write everything of the extension but its program to the new directory `folder`."""
    folder.mkdir(parents=True)
    (folder / "package.json").write_text(json.dumps(extension_manifest(), indent=2) + "\n", "utf-8")
    (folder / "README.md").write_text(extension_readme(), "utf-8")
    shutil.copy(ROOT / "LICENSE", folder)
    shutil.copy(ROOT / EXTENSION / "icon.png", folder)


if __name__ == "__main__":
    write_extension(Path(sys.argv[1]))
