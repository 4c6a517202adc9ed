"""Check that the version of a release is the same everywhere: `make release`."""

import json
import re
import subprocess
import sys
from pathlib import Path

from msp_bridge import __version__

ROOT = Path(__file__).parents[2]
RELEASE = re.compile(r"^## \[([^\]]+)\](?: - (\d{4}-\d\d-\d\d))?$", re.MULTILINE)
UNRELEASED = re.compile(r"^## \[Unreleased\]\n\s*(?!## )\S", re.MULTILINE)


def faults() -> list[str]:
    """List what to correct before a release, one sentence each."""
    found = []
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    if UNRELEASED.search(changelog):
        found.append("CHANGELOG.md: give what is under [Unreleased] the version of this release")
    releases: list[tuple[str, str]] = RELEASE.findall(changelog)
    newest, date = next(release for release in releases if release[0] != "Unreleased")
    if (newest, bool(date)) != (__version__, True):
        found.append(f"CHANGELOG.md: the newest version has to be [{__version__}], with its date")
    extension = json.loads((ROOT / "editors/vscode/package.json").read_text("utf-8"))["version"]
    if extension != __version__:
        found.append(f"editors/vscode/package.json: the version is {extension}, not {__version__}")
    if subprocess.run(["git", "status", "--porcelain"], cwd=ROOT, capture_output=True, check=True).stdout:
        found.append("git: there are changes that are not committed")
    return found


if __name__ == "__main__":
    sys.exit("\n".join(faults()) or None)
