"""Environments: virtual environments of a test's own, in which a tool is missing, old, or broken in some way."""

import os
import sysconfig
import venv
from collections.abc import Mapping
from pathlib import Path

from support.files import written

OURS = sysconfig.get_path("purelib")


def environment(directory: Path, files: Mapping[str, str] | None = None, **versions: str) -> Path:
    """The interpreter of a new environment with these `files` in its site-packages, and packages of these versions."""
    venv.create(directory, symlinks=True)  # as `python -m venv --without-pip`
    (site,) = directory.glob("lib/python3*/site-packages")
    written(site, files or {})
    for name, version in versions.items():
        info = site / f"{name}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    return directory / "bin" / "python"


def repair(python: Path) -> None:
    """Install what this process has, as far as the environment has nothing of its own of that name."""
    (site,) = python.parent.parent.glob("lib/python3*/site-packages")
    (site / "ours.pth").write_text(OURS + "\n")


def program(file: Path, script: str) -> Path:
    """A program that isn't the one that its name promises."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\n{script}\n")
    os.chmod(file, 0o755)
    return file
