"""What the tests of the cargo-mutants adapter share: trees, a stand-in for cargo, and adapters on them."""

import os
import shutil
import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from msp_bridge.adapters.cargo_mutants import CargoMutants

from support.adapters import detected

PROJECTS = Path(__file__).parent.parent / "projects"
EXAMPLE = Path(__file__).parents[2] / "examples" / "shop-rust"
STAND_IN = Path(__file__).with_name("scripted") / "cargo_stand_in.py"
# Where `make test` installs them, if there is a cargo, and where rustup does.
PROGRAMS = os.pathsep.join([os.environ["PATH"], str(Path(sys.executable).parent), os.path.expanduser("~/.cargo/bin")])


def needs(program: str) -> pytest.MarkDecorator:
    """Skip a test where cargo or its subcommand `program` is not there."""
    there = all(shutil.which(name, path=PROGRAMS) for name in ("cargo", program))
    return pytest.mark.skipif(not there, reason=f"{program} is not installed")


def copied(name: str | Path, to: Path) -> Path:
    """The project `name`, or the one at that path, copied below `to`."""
    return Path(shutil.copytree(PROJECTS / name, to / "project", ignore=shutil.ignore_patterns("target")))


def stand_in(directory: Path, monkeypatch: pytest.MonkeyPatch, *, installed: bool = True) -> None:
    """From now on `cargo` is the stand-in, and no other is to be found."""
    programs = directory / "programs"
    programs.mkdir()
    for name in ("cargo", "cargo-mutants")[: 1 + installed]:
        (programs / name).write_text(
            f'#!/bin/sh\necho "$@" >> {directory}/calls\nexec {sys.executable} -S {STAND_IN} "$@"\n'
        )
        (programs / name).chmod(0o755)
    (programs / "rustc").write_text("#!/bin/sh\necho rustc 1.95.0\n")
    (programs / "rustc").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.setenv("CARGO_HOME", str(directory / "cargo-home"))


def listings(directory: Path) -> int:
    """How often the stand-in has listed mutants."""
    return sum("--list" in call.split() for call in (directory / "calls").read_text().splitlines())


def adapter_on(root: Path, *, jobs: int = 2, cache: Path | None = None) -> AbstractAsyncContextManager[CargoMutants]:
    return detected(CargoMutants, root, cache=cache or root.parent / "cache", jobs=jobs)
