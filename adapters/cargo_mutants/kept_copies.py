"""KeptCopies: private copies of the workspace in which cargo finds what it has built before.

Theory of operation
-------------------
The problem. For each run cargo-mutants copies the tree, builds all of it and tests it without a mutant. For one mutant
that takes many times as long as the mutant.

The way out. cargo-mutants works in place (`--in-place`) in a copy that stays, and `target` with it. cargo builds what
is older than its source. So whatever a refresh writes has the time of that refresh: an older version of a file, and a
file that a run has left with a mutant in it because it was cancelled. Where a file has come or gone, or one has changed
that is no Rust, all files have it: what a procedural macro or a build script has read, cargo need not know. Before each
run is deleted what tests have left in `target/tmp`, and what was built of others than cargo knows (`unseen_changes`).

The run without a mutant is skipped (`--baseline=skip`) where it has passed before, as far as it can be known: with the
same files, compiler, configuration of cargo and isolation, for the same packages or more. It also gives the limit of
time for tests, which cargo-mutants derives from it and prints. It is never skipped if a package comes from elsewhere
that Cargo.lock does not pin.

A further copy that is new gets what has been built in the first one, dependencies above all. That is where runs are
isolated: all copies stand at the same path then, which is part of what cargo knows a build by. Its sources are written
after that, so cargo builds again whatever is made of them, a mutant included. Builds have no debug information, where
no test can tell (`debug_information`).

A copy is like one that cargo-mutants makes, without version control. Where its configuration asks for another kind of
copy, or for a limit of time that depends on a build from nothing, it makes its own.
"""

from __future__ import annotations

import contextlib
import logging
import shutil
from collections.abc import AsyncIterator, Hashable, Mapping, Sequence
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any, TypeAlias

from attrs import define, field

from msp_bridge import reading
from msp_bridge.concurrency import in_thread
from msp_bridge.toolkit import Sandbox, SandboxPool, WarmSandbox
from msp_bridge.toolkit.slot import size_of
from msp_bridge.toolkit.sync import Stopped

from . import debug_information
from .cargo import LOCK, configurations
from .unseen_changes import forget_builds

TARGET = "target"
MAX_JOBS = 8  # above which cargo-mutants warns: each job is a cargo with many processes
MAX_BUILD_BYTES = 4 << 30  # of a `target`, which is deleted when it has grown beyond
OWN_COPIES = frozenset({"build_timeout_multiplier", "copy_target", "copy_vcs", "gitignore"})  # keys of mutants.toml

log = logging.getLogger(__name__)

KeptCopy: TypeAlias = WarmSandbox[Sandbox, Any]


class KeptCopies:
    """The copies of the workspace at `workspace`: each of one run at a time, whichever bridge runs it."""

    def __init__(self, cache: Path, workspace: Path, configuration: Path) -> None:
        self._workspace, self._configuration = workspace, configuration
        claim = partial(Sandbox.claim, cache, workspace, "build", left_out=frozenset({TARGET}), compiled=".rs")
        self._places: SandboxPool[Sandbox, Any] = SandboxPool(claim)
        self._failed = False
        self.passed = Passed()
        self.compiler: Sequence[str] = ()  # what it said of itself in the last run
        self._profile: tuple[Hashable, Mapping[str, str | None]] = None, {}  # for one state

    def most(self) -> int:
        """How many copies may share mutants; 0: cargo-mutants makes other ones, or the tests fail there. Blocks."""
        configuration = reading.table(self._configuration)
        if self._failed or not OWN_COPIES.isdisjoint(configuration):
            return 0
        return 1 if "examine_re" in configuration else MAX_JOBS  # each run of 27 and later tests these mutants, too

    def give_up(self) -> None:
        """The tests fail in a kept copy, and pass in one that cargo-mutants makes."""
        self._failed = True

    @contextlib.asynccontextmanager
    async def lease(self) -> AsyncIterator[KeptCopy]:
        """A copy, of any earlier state; raises `ToolError` when all are in use, or none can be made."""
        async with self._places.lease() as place:
            yield place
            await in_thread(_limit, place.sandbox)

    async def refreshed(self, place: KeptCopy) -> Sandbox:
        """Return the copy when it is as the workspace is now. Raises `ToolError`."""
        pinned = await in_thread((self._workspace / LOCK).exists)
        place.sandbox.overlaid = set() if pinned else {LOCK}  # else cargo would choose versions anew for each run
        await place.refresh()
        target = place.sandbox.path / TARGET
        await in_thread(_make_empty, target / "tmp")
        await in_thread(forget_builds, place.sandbox, target)
        return place.sandbox

    def settings(self) -> Hashable:
        """Equal as long as the configuration of cargo and of cargo-mutants outside of the workspace is. Blocks."""
        return tuple(reading.digest(file) for file in [*configurations(self._workspace), self._configuration])

    def profile(self, copy: Sandbox) -> Mapping[str, str | None]:
        """The variables by which cargo builds in `copy` without debug information, if it may. Blocks."""
        state = copy.digest, self.settings()
        if state != self._profile[0]:
            self._profile = state, debug_information.without(copy.path, configurations(self._workspace))
        return self._profile[1]

    async def aclose(self) -> None:
        """Let other bridges have them."""
        await self._places.aclose()


@define
class Passed:
    """The runs without a mutant that have passed in one state of everything that they depend on."""

    _state: Hashable = None
    _limits: dict[frozenset[str], str] = field(factory=dict)

    def limit(self, state: Hashable, packages: frozenset[str]) -> str | None:
        """The seconds that tests may take, from a run of these packages or more; None: there was none in `state`."""
        if state != self._state:
            return None
        return next((limit for tested, limit in self._limits.items() if packages <= tested), None)

    def note(self, state: Hashable, packages: frozenset[str], limit: str) -> None:
        """A run of `packages` has passed in `state`; what is known of another state is forgotten."""
        if state != self._state:
            self._state, self._limits = state, {}
        self._limits[packages] = limit


def is_new(place: KeptCopy) -> bool:
    """Whether nothing is there yet. Blocks."""
    return not place.sandbox.path.exists()


async def give_build(first: KeptCopy, new: KeptCopy) -> None:
    """Give what was built in the first copy to the `new` one, which finds all its sources changed since then."""
    stop = Event()
    await in_thread(_copy_build, first.sandbox.path, new.sandbox.path, stop, on_cancel=stop.set)


def _copy_build(source: Path, copy: Path, stop: Event) -> None:
    def copied(file: str, target: str) -> None:
        if stop.is_set():
            raise Stopped
        shutil.copy2(file, target, follow_symlinks=False)

    part = copy.with_name(f"{TARGET}.part")  # for cargo a file that is cut off is built
    try:
        shutil.copytree(source / TARGET, part, symlinks=True, copy_function=copied)
        copy.mkdir()
        part.rename(copy / TARGET)
    except (OSError, Stopped) as error:
        log.info("%s is built from nothing: %s", copy, error)
        shutil.rmtree(part, ignore_errors=True)


def _limit(sandbox: Sandbox) -> None:
    size = size_of(sandbox.path)
    if size > MAX_BUILD_BYTES:
        shutil.rmtree(sandbox.path / TARGET, ignore_errors=True)
        size = sandbox.size
    sandbox.note_size(size)


def _make_empty(directory: Path) -> None:
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        shutil.rmtree(directory)
        directory.mkdir()
