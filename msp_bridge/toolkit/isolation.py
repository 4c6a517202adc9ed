"""Isolation: a run of a tool sees its sandbox at the project's own path, and nothing that it leaves elsewhere stays.

Theory of operation
-------------------
The problem. A tool that runs in a private copy still reaches the user's tree, by absolute paths, editable installs and
links. It does not find what the copy leaves out. What it leaves in /tmp, and what it has started, meets the next run.

The way out, on Linux where namespaces are permitted. The tool is started by `isolation.command`
(`isolation/namespaces.py` has the theory). The sandbox stands at the project's own path. What it leaves out
(environments, version control) stands there too, and what is written into that is dropped.

Parts: "overlay" (what the sandbox leaves out), "tmp", "pid", "ipc", "net". Two parts that a Python mutant has bring a
tool's run nothing: a layer over the tree, because the sandbox is the run's own and is made equal to the project before
the next one, and build results would fill the memory; and "home", the home directory, where tools keep what they have
downloaded. Where an adapter runs nothing but tests, it may have both.

Which parts are on: the most that the run without a mutant passes in. `STEPS` are tried one after another, and at last
the sandbox where it lies. A tool without a run of that kind keeps the machine's network: nothing would show that its
tests need one, and each mutant would be killed. A run of the tool that fails inside is made again outside. If it passes
there, later runs have fewer parts.

What else belongs to a run is named by `Around`: the packages of a workspace, each with a copy, and installed ones, with
a layer alone. A layer may hide that a file below it was replaced. A tool that stays warm is started anew, then.

A tool that makes copies of its own, as cargo-mutants, runs in the project itself, under a layer: what is written into
the project by an absolute path is dropped.

The portable way, everywhere else: the sandbox where it lies, and a TMPDIR for each run. `Sandbox.refresh` puts back
what the run has written.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from attrs import define, field, frozen

from msp_bridge.concurrency import in_thread
from msp_bridge.errors import BridgeError
from msp_bridge.isolation.command import command_line, reported
from msp_bridge.isolation.left_out import CACHE_MARKERS, CACHES, IGNORED_DIRS
from msp_bridge.processes import ProcessTree
from msp_bridge.toolkit.slot import erase

log = logging.getLogger(__name__)

T = TypeVar("T")

OFFLINE = frozenset({"overlay", "tmp", "pid", "ipc", "net"})
STEPS = (OFFLINE, OFFLINE - {"net"}, frozenset({"overlay"}))
VARIABLE = "MSP_BRIDGE_ISOLATION"
LAYERS, OPTIONS, REPORT = "msp-bridge-layers", "msp-bridge-isolation.py", "msp-bridge-parts"  # beside a sandbox
CACHE = "CACHEDIR.TAG"  # marks build results, as cargo's `target`
MEANING = {"net": "the network", "tmp": "temporary files", "home": "the home directory"}
MEANING |= {"pid": "processes", "ipc": "queues"}


def wanted_isolation(environment: Mapping[str, str]) -> list[str] | None:
    """The parts to try; None: all that the machine permits.

    The variable MSP_BRIDGE_ISOLATION names them, separated by commas; `off` is none of them, and empty as good as
    unset. It is meant for finding out which part a test does not pass in.
    """
    named = environment.get(VARIABLE)
    if not named:
        return None
    return [] if named == "off" else [part.strip() for part in named.split(",")]


@frozen
class Around:
    """Everything that belongs to a run beside the sandbox of the project."""

    keep: Sequence[str]  # directories that the copies leave out: relative to the project, or absolute in `copies`
    copies: Mapping[Path, Path] = field(factory=dict)  # further directories, and the copy that stands for each
    outside: Sequence[Path] = ()  # directories into which nothing may be written


@define
class Isolation:
    """The isolation of one tool's runs in one project. Make one with `Isolation.of`."""

    tool: str  # for the log
    root: Path  # the project, links resolved
    _all: tuple[frozenset[str], ...]  # to try, the most parts first
    _step: int = field(default=0, init=False)
    parts: frozenset[str] = field(default=frozenset(), init=False)  # of the last run that was inside
    refused: Mapping[str, str] = field(factory=dict, init=False)  # part to the reason of the kernel
    _logged: object = field(default=None, init=False)
    _probed: bool = field(default=False, init=False)

    @classmethod
    def of(cls, tool: str, root: Path, *, network: bool, home: bool = False) -> Isolation:
        """`network`: keep the machine's, because the tool has no run without a mutant.

        `home`: drop what is written into the home directory, where only tests run.
        """
        named = wanted_isolation(os.environ)
        steps: tuple[frozenset[str], ...] = STEPS[1:] if network else STEPS
        if home:
            steps = tuple(step | {"home"} for step in steps)
        if named is not None:
            steps = tuple(dict.fromkeys(step.intersection(named) for step in steps)) if named else ()
        return cls(tool, Path(os.path.realpath(root)), steps if sys.platform == "linux" else ())

    @property
    def is_on(self) -> bool:
        """Whether the next run is inside."""
        return self._step < len(self._all)

    @property
    def wanted(self) -> frozenset[str]:
        """The parts that the next run is to have; none if it is not inside."""
        return self._all[self._step] if self.is_on else frozenset()

    def reduce(self, reason: str) -> None:
        """The tool fails inside, and passes outside: the next run has fewer parts."""
        left_out = sorted(
            self._all[self._step] - (self._all[self._step + 1] if self._step + 1 < len(self._all) else set())
        )
        self._step += 1
        what = f"runs without {', '.join(left_out)}" if self.is_on else "runs in a private copy, without namespaces"
        log.warning("%s fails isolated and passes otherwise, so it %s from now on: %s", self.tool, what, reason)

    async def decide(self, passes: Callable[[], Awaitable[bool]]) -> bool:
        """Find the most parts with which the run without a mutant `passes`. False: it fails without any part, too.

        It is tried with all parts, and then without any: a run that fails there needs no further try.
        """
        if await passes():
            return True
        began = self._step
        try:
            found = await self._passing(passes)
        finally:
            self._step = began  # also when a try is cancelled
        if found is None:
            return False
        while self._step < found:
            self.reduce("the run without a mutant shows it")
        return True

    async def _passing(self, passes: Callable[[], Awaitable[bool]]) -> int | None:
        """The next step with which the run `passes`; None if it does not pass without any part."""
        further = range(self._step + 1, len(self._all))
        if not self.is_on:
            return None
        self._step = len(self._all)
        if not await passes():
            return None
        for step in further:
            self._step = step
            if await passes():
                return step
        return len(self._all)

    async def run(self, start: Callable[[bool], AsyncGenerator[T, None]]) -> AsyncGenerator[T, None]:
        """The items of `start(True)`, a run of the tool that is isolated, or of `start(False)`, one that is not.

        The second where nothing is permitted, or where the first raises BridgeError before its first item: what was
        yielded can't be taken back. If the second comes to its end then, `reduce`, unless another run did.
        """
        failure, began = "", self._step
        if self.is_on:
            found = False
            try:
                async with contextlib.aclosing(start(True)) as items:
                    async for item in items:
                        found = True
                        yield item
                return
            except BridgeError as error:
                if found:
                    raise
                failure = error.problem
        async with contextlib.aclosing(start(False)) as items:
            async for item in items:
                yield item
        if failure and self._step == began:
            self.reduce(failure)

    def command(
        self,
        sandbox: Path,
        command: Sequence[str],
        share: Sequence[Path],
        home: Path | None = None,
        around: Around | None = None,
    ) -> list[str]:
        """Return the arguments that run `command` inside; if it is empty, serve commands (`isolation.serving`). Blocks.

        `sandbox` may be the project itself: then what is written into it is dropped, too. `share`: directories outside
        of the project that stay the real ones. `home`: a private directory for what this needs, by default the
        sandbox's parent. `around`: what there is beside the project, and what is kept of it. Raises OSError.
        """
        home = home or sandbox.parent
        in_place = os.path.realpath(sandbox) == str(self.root)
        for name in (LAYERS, REPORT):
            if os.path.lexists(home / name):
                erase(str(home / name))
        (home / LAYERS).mkdir()
        around = around or Around([] if in_place else left_out(self.root, sandbox))
        options = {
            "root": str(self.root),
            "copy": str(sandbox),
            "layers": str(home / LAYERS),
            "keep": list(around.keep),
            "share": [str(path) for path in share],
            "others": {str(directory): str(copy) for directory, copy in around.copies.items()},
            "outside": [str(path) for path in around.outside],
            "parts": sorted(self.wanted),
            "tree": in_place,
            "report": str(home / REPORT),
            "command": list(command),
        }
        return command_line(options, home / OPTIONS)

    def note(self, home: Path) -> None:
        """Note after a run which parts it had, for the log and for `doctor`. Blocks. `home` is that of `command`."""
        try:
            self.parts, self.refused = reported(home / REPORT)
        except OSError:
            return  # the kernel permits nothing, or the run was ended before
        if self._logged != self.parts:
            self._logged = self.parts
            log.info("%s: %s", self.tool, self.description)

    async def probe(self) -> None:
        """Find out once, before the first run, what the machine permits."""
        if self._probed or not self.is_on:
            return
        with tempfile.TemporaryDirectory(prefix="msp-bridge-probe-") as directory:
            sandbox = Path(os.path.realpath(directory), "copy")
            sandbox.mkdir()
            argv = await in_thread(self.command, sandbox, [sys.executable, "-I", "-c", ""], ())
            async with ProcessTree.running(argv, cwd=sandbox) as tree:
                code = await tree.exited()
                if code != 0:
                    self.refused, self._all = {"mount": tree.errors.strip()}, ()
                    log.info("%s: %s", self.tool, self.description)
            await in_thread(self.note, sandbox.parent)
        self._probed = True

    async def described(self) -> str:
        """The `description`, once it is known what the machine permits."""
        await self.probe()
        return self.description

    @property
    def description(self) -> str:
        """Describe what is isolated per run."""
        own = [meaning for part, meaning in MEANING.items() if part in self.parts]
        if self.is_on:
            text = f"isolated per run: {', '.join(['the tree at its own path', *own])}"
        else:
            text = "isolated per run: a copy of the tree, TMPDIR"
        refused = "; ".join(f"{part}: {reason}" for part, reason in sorted(self.refused.items()))
        return f"{text} ({refused})" if refused else text


def left_out(root: Path, sandbox: Path) -> list[str]:
    """The directories of the project, relative to it, that the sandbox leaves out and that a tool may need: no caches.

    An empty directory in the sandbox is none: there an earlier run has mounted the real one.
    """
    found = []
    for directory, names, _ in os.walk(root):
        place = os.path.relpath(directory, root)
        for name in list(names):
            present = [marker for marker in CACHE_MARKERS if os.path.exists(os.path.join(directory, name, marker))]
            if name not in IGNORED_DIRS and not present:
                continue
            names.remove(name)
            inside = sandbox / place / name
            is_cache = name in CACHES or present == [CACHE]
            if not is_cache and not (os.path.isdir(inside) and os.listdir(inside)):
                found.append(os.path.normpath(os.path.join(place, name)))
    return sorted(found)


@contextlib.asynccontextmanager
async def own_tmpdir() -> AsyncIterator[dict[str, str | None]]:
    """Variables of a run that is not isolated: temporary files go to a directory that is deleted after the run.

    Its name is short: a socket's path has at most 108 characters.
    """
    directory = tempfile.mkdtemp(prefix="msp-")  # at once: a cancel of a thread that makes it would leave it
    try:
        yield dict.fromkeys(("TMPDIR", "TMP", "TEMP"), directory)
    finally:
        await in_thread(shutil.rmtree, directory, True)
