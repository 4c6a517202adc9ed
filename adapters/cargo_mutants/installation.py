"""Where cargo and cargo-mutants are, and how one installs them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from msp_bridge.adapter import MachineCommand, ToolError

MANIFEST = "Cargo.toml"
CONFIGURATION = "mutants.toml"  # in the folder .cargo of the workspace
INSTALL = MachineCommand("cargo install --locked cargo-mutants")


def cargo() -> str:
    """The program, also where an editor's PATH doesn't lead; raises `ToolError`."""
    found = shutil.which("cargo", path=search_path())
    if found is None:
        raise ToolError("there is no cargo on PATH, nor in ~/.cargo/bin", "install Rust from https://rustup.rs")
    return found


def is_installed() -> bool:
    """Whether cargo would find its subcommand `mutants`."""
    return shutil.which("cargo-mutants", path=search_path()) is not None


def search_path() -> str:
    """PATH, and the directory where `cargo install` puts programs."""
    return os.pathsep.join([os.environ.get("PATH", os.defpath), str(home() / "bin")])


def home() -> Path:
    """The directory where cargo keeps what it downloads and installs, and the user's configuration of it."""
    return Path(os.environ.get("CARGO_HOME") or os.path.expanduser("~/.cargo"))
