"""Places: a small disk, and a user whom permissions bind; both skip where they can't be had."""

import contextlib
import ctypes
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

PR_CAPBSET_DROP = 24
CAPABILITIES = 41  # of Linux; those that a kernel doesn't know can't be dropped


@contextlib.contextmanager
def mounted(directory: Path, size: str) -> Iterator[None]:
    """A file system of `size` in memory at `directory`."""
    directory.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", directory], capture_output=True)
    if made.returncode:
        pytest.skip(f"may not mount a small disk here: {made.stderr.decode().strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", directory], check=True)


def remount(directory: Path, option: str) -> None:
    """Another size, or `ro` or `rw`."""
    subprocess.run(["mount", "-o", f"remount,{option}", directory], check=True)


def bound(directory: Path) -> dict[str, Any]:
    """What a subprocess must be started with so that permissions bind it: for root, whom nothing binds, no capabilities."""
    closed = directory / "closed"
    closed.touch(mode=0)
    how = {"preexec_fn": _drop_capabilities} if os.geteuid() == 0 else {}
    probe = [sys.executable, "-c", "import sys; open(sys.argv[1])", closed]
    if subprocess.run(probe, stderr=subprocess.DEVNULL, **how).returncode == 0:  # type: ignore[call-overload]
        pytest.skip("permissions don't bind this user, nor can it be helped")
    closed.unlink()
    return how


def _drop_capabilities() -> None:
    for capability in range(CAPABILITIES):
        ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
