"""CargoRun: runs of cargo-mutants on chosen mutants.

They are tested in copies of ours (`kept_copies`), with several jobs in several of them at once; each takes its next
mutants when it is done with its last ones. Reports lie in a private temporary directory.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import os
import re
from collections import deque
from collections.abc import AsyncGenerator, Hashable, Mapping, Sequence
from functools import partial
from pathlib import Path

from attrs import define, field, frozen

from msp_bridge import reading
from msp_bridge.adapter import BaselineError, Mutant, Result
from msp_bridge.concurrency import in_thread, meanwhile, merge_streams
from msp_bridge.phases import BASELINE, report_phase
from msp_bridge.source import as_discovered
from msp_bridge.toolkit import Around, Isolation, Sandbox, own_tmpdir

from .cargo import BASELINE_FAILED, LOCK, SUCCESS, CargoCommand, compiler, has_dependencies, is_pinned
from .kept_copies import MAX_JOBS, TARGET, KeptCopies, KeptCopy, Passed, give_build, is_new
from .outcomes import Outcomes

log = logging.getLogger(__name__)

MAX_MUTANTS_OF_RUN = 500  # with some thousands of names the tool's regular expression gets too large
LEAST_OF_A_RUN = 4  # mutants
KEPT_BACK = 1 / 8  # of what is due, for the copies that are done first
MUTANTS_OF_A_COPY = 8  # for fewer the build from nothing of another copy takes longer than testing them one by one
SKIP = "--baseline=skip"
ISOLATION = "isolation"  # in the private directory
SPECIAL = re.compile(r"([\\.+*?()|\[\]{}^$#&~-])")


class _OtherCompiler(Exception):
    """The compiler is not the one of the last run, for which this one was taken."""


@define
class _Place:
    """Where cargo-mutants runs once."""

    workspace: Path  # the project's own, which cargo-mutants copies, or a kept copy, in which it works
    root: Path  # of the project, or its counterpart in the copy
    arguments: Sequence[str]
    env: Mapping[str, str | None]
    is_kept: bool
    limit: str | None = None  # for tests, in seconds, once it is known


@define
class _Work:
    """The mutants that kept copies share."""

    due: deque[Mutant]
    copies: int
    new: list[KeptCopy]  # copies without a build, which wait for that of the first copy
    passed: Passed = field(factory=Passed, init=False)  # for these mutants, also if it may not be kept for others
    measured: asyncio.Event = field(factory=asyncio.Event, init=False)  # the first copy has come beyond its baseline
    lock: bytes = field(default=b"", init=False)  # the lock file of the copy in which the tests have passed
    _share: int = field(default=0, init=False)
    _shares: int = field(default=0, init=False)  # of that size that nobody has taken yet

    def take(self) -> list[Mutant]:
        """Take a share of what is due: each copy gets one, and the rest goes to the first ones that are done.

        So they end at about the same time after few runs, each of which takes some tenths of a second besides: for a
        few mutants none is made. Where others wait for a build, a mutant of each of some packages is enough for it.
        """
        if self.new:
            first_of = {package: mutant for mutant in reversed(self.due) for package in mutant.handle.packages}
            share = list(dict.fromkeys(first_of.values()))[-LEAST_OF_A_RUN:]
            self.due = deque(mutant for mutant in self.due if mutant not in share)
            return share
        if not self._shares:
            each = len(self.due) / self.copies
            kept_back = each * KEPT_BACK if self.copies > 1 else 0
            self._share = math.ceil(each - kept_back if kept_back >= LEAST_OF_A_RUN else each)
            self._shares = self.copies
        self._shares -= 1
        return [self.due.popleft() for _ in range(min(self._share, len(self.due)))]

    def pin(self, copy: Path) -> None:
        """Give `copy` the lock file with which the tests have passed, if there is one yet. Blocks.

        Where the project has none, cargo makes one in each copy. An isolated run can't get what that names.
        """
        if self.lock and reading.content_or_empty(copy / LOCK) != self.lock:
            (copy / LOCK).write_bytes(self.lock)

    def note(self, state: Hashable, packages: frozenset[str], limit: str | None) -> None:
        """A mutant has been tested: the tests pass without one."""
        if not self.new:
            self.measured.set()
        if limit is not None:
            self.passed.note(state, packages, limit)


@frozen
class CargoRun:
    """Runs of cargo-mutants, for the requests of one project."""

    root: Path  # of the project
    command: CargoCommand
    copies: KeptCopies
    jobs: int
    options: Sequence[str]
    isolation: Isolation  # of the workspace

    async def results(self, mutants: Sequence[Mutant]) -> AsyncGenerator[Result, None]:
        """Results of those of `mutants` whose files are as they were listed, each as soon as cargo-mutants reports it.

        Closing it ends the tool and deletes all that it wrote, apart from kept copies. Raises `ToolError`.
        """
        for start in range(0, len(mutants), MAX_MUTANTS_OF_RUN):
            current = await in_thread(as_discovered, self.root, mutants[start : start + MAX_MUTANTS_OF_RUN])
            if current:
                await self.isolation.probe()
                run = self.isolation.run(partial(self._some, current))
                async with contextlib.aclosing(run) as results:
                    async for result in results:
                        yield result

    async def _some(self, mutants: Sequence[Mutant], isolated: bool) -> AsyncGenerator[Result, None]:
        """Test in kept copies; where the tests fail there without a mutant, in copies that cargo-mutants makes.

        The tool's own run without a mutant decides whether it can be isolated: see `Isolation.run`.
        """
        jobs, due = min(self.jobs, MAX_JOBS, len(mutants)), dict.fromkeys(mutants)
        keep = await in_thread(self.copies.most)
        if keep:
            try:
                async with contextlib.aclosing(self._in_kept_copies(mutants, min(jobs, keep), isolated)) as results:
                    async for result in results:
                        due.pop(result.mutant, None)
                        yield result
                return
            except BaselineError as error:
                log.info("%s; trying again in a copy that cargo-mutants makes", error)
        env = {"CARGO_TARGET_DIR": None}
        own = _Place(self.isolation.root, self.root, ["--jobs", str(jobs)], env, is_kept=False)
        async with contextlib.aclosing(self._once(list(due), own, isolated)) as results:
            async for result in results:
                if keep:
                    self.copies.give_up()
                yield result

    async def _in_kept_copies(
        self, mutants: Sequence[Mutant], most: int, isolated: bool
    ) -> AsyncGenerator[Result, None]:
        copies = min(most, math.ceil(len(mutants) / MUTANTS_OF_A_COPY))
        async with contextlib.AsyncExitStack() as stack:
            kept = [await stack.enter_async_context(self.copies.lease()) for _ in range(copies)]
            kept.sort(key=is_new)
            new = list(filter(is_new, kept[1:])) if isolated else []  # otherwise they lie at other paths
            work = _Work(deque(mutants), copies, new if new and await self._share_builds(mutants) else [])
            streams = [self._in_kept_copy(work, one, isolated, one is kept[0]) for one in kept]
            async with contextlib.aclosing(merge_streams(streams)) as results:
                async for result in results:
                    yield result

    async def _share_builds(self, mutants: Sequence[Mutant]) -> bool:
        """Whether what one copy has built, or tested without a mutant, is worth waiting for."""
        packages = _packages(mutants)
        return len(packages) > 1 or await in_thread(has_dependencies, self.isolation.root)

    async def _in_kept_copy(
        self, work: _Work, kept: KeptCopy, isolated: bool, is_first: bool
    ) -> AsyncGenerator[Result, None]:
        if not is_first:
            if kept not in work.new:
                await self.copies.refreshed(kept)  # meanwhile
            await work.measured.wait()
        mutants: list[Mutant] = []
        while mutants := mutants or work.take():
            copy = await self.copies.refreshed(kept)
            await in_thread(work.pin, copy.path)
            with contextlib.suppress(_OtherCompiler):  # before any result: the same ones once more
                async with contextlib.aclosing(self._in_place(work, mutants, copy, isolated)) as results:
                    async for result in results:
                        yield result
                mutants = []
                while work.new:
                    await give_build(kept, work.new.pop())
                work.measured.set()

    async def _in_place(
        self, work: _Work, mutants: Sequence[Mutant], copy: Sandbox, isolated: bool
    ) -> AsyncGenerator[Result, None]:
        root = copy.path / self.root.resolve().relative_to(self.isolation.root)
        current = await in_thread(as_discovered, root, mutants)
        if not current:
            return
        packages = _packages(current)
        async with meanwhile(compiler(self.root), "version of the compiler") as asking:  # as slow as a small build
            rustc = self.copies.compiler or await asking
            state = await self._state(copy, isolated, rustc)
            limit = work.passed.limit(state, packages)
            limit = limit or self.copies.passed.limit((state, await in_thread(_lock, copy)), packages)
            if limit is None:
                self._check(rustc, await asking)
            place = await self._place(work, copy, root, isolated, limit)
            async with contextlib.aclosing(self._once(current, place, isolated)) as results:
                async for result in results:
                    self._check(rustc, await asking)
                    work.lock = work.lock or await in_thread(reading.content_or_empty, copy.path / LOCK)
                    work.note(state, packages, place.limit)
                    yield result
        if limit is None and place.limit is not None and await in_thread(is_pinned, copy.path):
            self.copies.passed.note((state, await in_thread(_lock, copy)), packages, place.limit)

    def _check(self, taken: Sequence[str], rustc: Sequence[str]) -> None:
        self.copies.compiler = rustc
        if taken != rustc:
            raise _OtherCompiler

    async def _state(self, copy: Sandbox, isolated: bool, rustc: Sequence[str]) -> Hashable:
        """Name all that a run without a mutant in `copy` depends on, apart from the lock file, which cargo may make."""
        settings = await in_thread(self.copies.settings)
        return copy.digest, tuple(rustc), settings, self.isolation.wanted if isolated else None

    async def _place(self, work: _Work, copy: Sandbox, root: Path, isolated: bool, limit: str | None) -> _Place:
        seen = self.isolation.root if isolated else copy.path
        profile = await in_thread(self.copies.profile, copy)
        target = str(seen / TARGET)  # wherever the user's configuration puts builds: isolated, copies have one path
        env = {"CARGO_TARGET_DIR": target, "CARGO_BUILD_BUILD_DIR": target, "CARGO_MUTANTS_JOBS": None, **profile}
        arguments = ["--in-place", *([] if limit is None else [SKIP, "--timeout", limit])]
        if work.copies > 1 and not work.new:  # each run would have as many as the machine has processors
            arguments += ["--jobserver-tasks", str(max(1, (os.cpu_count() or 1) // work.copies))]
        return _Place(copy.path, root, arguments, env, is_kept=True, limit=limit)

    async def _once(self, mutants: Sequence[Mutant], place: _Place, isolated: bool) -> AsyncGenerator[Result, None]:
        chosen = dict.fromkeys(name for mutant in mutants for name in mutant.handle.names)
        names = [word for name in chosen for word in ("--re", _exactly(name))]
        arguments = [*self.options, "--no-shuffle", "--caught", "--unviable", *place.arguments, *names]
        async with own_tmpdir() as env:
            directory = Path(env["TMPDIR"] or "")
            outcomes = Outcomes(directory / "mutants.out", mutants, None if place.is_kept else self.root, place.limit)
            within = partial(self._isolated, directory, place) if isolated else None
            cwd = self.root if isolated else place.root
            if SKIP not in arguments:
                report_phase(BASELINE)  # cargo-mutants builds the tree for it, and may copy it
            async with self.command.running(
                "--output", str(directory), *arguments, cwd=cwd, env={**env, **place.env}, within=within
            ) as tree:
                async with contextlib.aclosing(tree.lines()) as lines:
                    async for _ in lines:  # one for each outcome, after that is in outcomes.json
                        for result in await in_thread(outcomes.new):
                            place.limit = outcomes.limit
                            yield result
                code = await tree.exited()
                if code == BASELINE_FAILED:
                    raise await in_thread(outcomes.baseline_error)
                if code not in SUCCESS:
                    raise self.command.failure(tree)
                for result in await in_thread(outcomes.new):
                    place.limit = outcomes.limit
                    yield result
            await in_thread(self.isolation.note, directory / ISOLATION)

    def _isolated(self, directory: Path, place: _Place, argv: list[str]) -> list[str]:
        """Isolate the run: what it writes elsewhere than into the copy and this directory is dropped."""
        home = directory / ISOLATION
        home.mkdir()
        return self.isolation.command(place.workspace, argv, [directory], home, Around([]))


def _lock(copy: Sandbox) -> str | None:
    return reading.digest(copy.path / LOCK)


def _packages(mutants: Sequence[Mutant]) -> frozenset[str]:
    return frozenset(package for mutant in mutants for package in mutant.handle.packages)


def _exactly(name: str) -> str:
    """A regular expression, as Rust's crate `regex` reads it, for this name and no other."""
    return "^" + SPECIAL.sub(r"\\\1", name) + "$"
