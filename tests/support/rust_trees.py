"""What the tests of the cargo-mutants adapter share: trees, a stand-in for cargo, and adapters on them."""

import os
import shutil
import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from msp_bridge.adapters.cargo_mutants import CargoMutants

from support.adapters import detected
from support.environments import program

STAND_IN = Path(__file__).with_name("scripted") / "cargo_stand_in.py"
# Where `make test` installs them, if there is a cargo, and where rustup does.
PROGRAMS = os.pathsep.join([os.environ["PATH"], str(Path(sys.executable).parent), os.path.expanduser("~/.cargo/bin")])


def needs(subcommand: str) -> pytest.MarkDecorator:
    """Skip a test where cargo or its `subcommand` is not there."""
    there = all(shutil.which(name, path=PROGRAMS) for name in ("cargo", subcommand))
    return pytest.mark.skipif(not there, reason=f"{subcommand} is not installed")


def stand_in(directory: Path, monkeypatch: pytest.MonkeyPatch, *, installed: bool = True) -> None:
    """From now on `cargo` is the stand-in, and no other is to be found."""
    programs = directory / "programs"
    for name in ("cargo", "cargo-mutants")[: 1 + installed]:
        program(programs / name, f'echo "$@" >> {directory}/calls\nexec {sys.executable} -S {STAND_IN} "$@"')
    program(programs / "rustc", "echo rustc 1.95.0")
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.setenv("CARGO_HOME", str(directory / "cargo-home"))


def listings(directory: Path) -> int:
    """How often the stand-in has listed mutants."""
    return sum("--list" in call.split() for call in (directory / "calls").read_text().splitlines())


def adapter_on(root: Path, **about: Any) -> AbstractAsyncContextManager[CargoMutants]:
    return detected(CargoMutants, root, **{"jobs": 2, **about})
