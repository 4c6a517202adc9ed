"""Changes that cargo does not see: the builds that depend on them are deleted in a kept copy before each run.

A copy has cargo see what changes in a package of the workspace. Beside that

- a vendored package never changes for cargo, though somebody may edit one (without `files` in its checksums);
- a package outside of the workspace has the times of the user's files. What is moved there, or unpacked, may be older
  than the build of what was there before;
- a build script runs again when a file has changed that it has named (`rerun-if-changed`). It may read other sources.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path

from msp_bridge import reading
from msp_bridge.toolkit import Sandbox
from msp_bridge.toolkit.slot import erase
from msp_bridge.toolkit.sync import is_overlaid
from msp_bridge.writing import replace_content

from .cargo import LOCK, own_packages, unpinned_packages

NOTE = "msp-bridge-built-of.json"  # in `target`
CHECKSUMS = ".cargo-checksum.json"  # in the directory of each vendored package
FINGERPRINTS = ("*/.fingerprint", "*/*/.fingerprint")  # in `target`: of a profile, and of one for another platform


def forget_builds(copy: Sandbox, target: Path) -> None:
    """Delete from `target` what was built of others than what is in `copy` since its last refresh. Blocks."""
    before, now = _noted(target / NOTE), _state(copy)
    if before != now:
        if before.get("vendored") != now["vendored"]:
            if target.exists():
                erase(os.fspath(target))
        else:
            _delete(target, [f"{name}-*/run-build-script-*" for name in own_packages(copy.path)])
        target.mkdir(exist_ok=True)
        replace_content(target / NOTE, json.dumps(now))
    _delete(target, [f"{name}-*" for name in unpinned_packages(copy.path, reading.table(copy.path / LOCK))])


def _noted(note: Path) -> Mapping[str, str]:
    """Return what was built until now; empty where nothing was, or nobody knows."""
    try:
        noted = json.loads(reading.content(note))
    except (OSError, ValueError):
        return {}
    return noted if isinstance(noted, dict) else {}


def _state(copy: Sandbox) -> dict[str, str]:
    roots = {path.removesuffix(CHECKSUMS) for path in copy.records if os.path.basename(path) == CHECKSUMS}
    digests = {"vendored": blake2b(digest_size=16), "sources": blake2b(digest_size=16)}
    for path, record in copy.records.items():
        is_vendored = is_overlaid(path, roots)
        if is_vendored or path.endswith(".rs"):
            line = f"{path}\0{record.digest}\n".encode("utf-8", "surrogatepass")
            digests["vendored" if is_vendored else "sources"].update(line)
    return {name: digest.hexdigest() for name, digest in digests.items()}


def _delete(target: Path, patterns: list[str]) -> None:
    for fingerprints in FINGERPRINTS:
        for pattern in patterns:
            for found in target.glob(f"{fingerprints}/{pattern}"):
                erase(os.fspath(found))
