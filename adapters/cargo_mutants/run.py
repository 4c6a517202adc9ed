"""CargoRun: runs of cargo-mutants on chosen mutants, and what its growing report says of them.

Reports, and the copies that cargo-mutants makes, lie in a private temporary directory. Few mutants are tested in a copy
of ours (`kept_copies`).
"""

from __future__ import annotations

import contextlib
import json
import logging
import re
from collections.abc import AsyncGenerator, Hashable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from attrs import define, field, frozen

from msp_bridge import reading
from msp_bridge.adapter import BaselineError, Mutant, Result, Status
from msp_bridge.concurrency import in_thread
from msp_bridge.phases import BASELINE, report_phase
from msp_bridge.toolkit import Around, Isolation, Sandbox, own_tmpdir

from .cargo import BASELINE_FAILED, LOCK, SUCCESS, CargoCommand, compiler, is_pinned
from .kept_copies import TARGET, KeptCopies
from .listing import Key, key_of

log = logging.getLogger(__name__)

MAX_MUTANTS_OF_RUN = 500  # with some thousands of names the tool's regular expression gets too large
MAX_JOBS = 8  # above which cargo-mutants warns: each job is a cargo with many processes
MAX_MUTANTS_OF_KEPT_COPY = 8  # for which a build from nothing takes longer than testing them one by one
STATUSES = {
    "CaughtMutant": Status.KILLED,
    "MissedMutant": Status.SURVIVED,
    "Unviable": Status.COMPILE_ERROR,
    "Timeout": Status.TIMEOUT,
    "Failure": Status.RUNTIME_ERROR,
}
FAILED = re.compile(r"^test (.+?)(?: - should panic)? \.\.\. FAILED$", re.MULTILINE)
COUNTED = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed;", re.MULTILINE)
PANIC = re.compile(r"^thread '.*' .*panicked at .*:\n((?:.+\n)+?)(?=stack backtrace:|note: |\n)", re.MULTILINE)
ERROR = re.compile(r"^error.*", re.MULTILINE)
SKIP = "--baseline=skip"
LIMIT = re.compile(rb"Auto-set test timeout to (\d+)s")
ISOLATION = "isolation"  # in the private directory
SHOWN_CHARS = 1000  # of a reason
SPECIAL = re.compile(r"([\\.+*?()|\[\]{}^$#&~-])")


@define
class Outcomes:
    """The directory `mutants.out` of one run, while it grows."""

    directory: Path
    due: Mapping[Key, Mutant]
    copied: Path | None = None  # the project, if the run makes copies of it
    _seen: int = field(default=0, init=False)

    def new(self) -> list[Result]:
        """Results since the last call. `outcomes.json` is written anew for each: half of one is no report yet."""
        try:
            outcomes = json.loads((self.directory / "outcomes.json").read_bytes())["outcomes"]
        except (FileNotFoundError, ValueError):
            return []
        if outcomes and not self._seen and self.copied is not None:  # what was edited by now, is another mutant's
            self.due = {mutant.handle.key: mutant for mutant in _current(self.copied, list(self.due.values()))}
        fresh, self._seen = outcomes[self._seen :], len(outcomes)
        return [result for outcome in fresh for result in self._results(outcome)]

    def baseline_error(self) -> BaselineError:
        """The error for tests that fail without a mutant."""
        log = self._log("log/baseline.log")
        failing, first = FAILED.findall(log), _reason(log) or ""
        what = ", ".join(failing) or first or "`cargo test` fails"
        return BaselineError(
            f"the tests fail without any mutant: {what}", "make `cargo test` pass first", failing, first
        )

    def _results(self, outcome: Mapping[str, Any]) -> Iterator[Result]:
        scenario = outcome["scenario"]
        if not isinstance(scenario, dict) or outcome["summary"] not in STATUSES:
            return  # the baseline, or a mutant that was only built
        mutant = self.due.get(key_of(scenario["Mutant"]))
        if mutant is None:
            return
        status, log = STATUSES[outcome["summary"]], self._log(outcome["log_path"])
        counted = [int(passed) + int(failed) for passed, failed in COUNTED.findall(log)]
        yield Result(
            mutant,
            status,
            duration=sum(phase["duration"] for phase in outcome["phase_results"] if phase["phase"] == "Test") * 1000,
            killed_by=tuple(FAILED.findall(log)) or None if status is Status.KILLED else None,
            status_reason=None if status is Status.SURVIVED else _reason(log),
            tests_completed=sum(counted) if counted else None,
        )

    def _log(self, path: str) -> str:
        try:
            return (self.directory / path).read_text("utf-8", "replace")
        except OSError:
            return ""


@define
class _Place:
    """Where cargo-mutants runs once."""

    workspace: Path  # the project's own, which cargo-mutants copies, or a kept copy, in which it works
    root: Path  # of the project, or its counterpart in the copy
    arguments: Sequence[str]
    env: Mapping[str, str | None]
    is_kept: bool
    limit: str | None = None  # for tests, in seconds: what cargo-mutants has derived from its run without a mutant

    def hear(self, line: bytes) -> None:
        """Take the limit from what cargo-mutants prints."""
        if found := LIMIT.search(line):
            self.limit = found[1].decode()


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
            current = await in_thread(_current, self.root, mutants[start : start + MAX_MUTANTS_OF_RUN])
            if current:
                await self.isolation.probe()
                run = self.isolation.run(partial(self._some, current))
                async with contextlib.aclosing(run) as results:
                    async for result in results:
                        yield result

    async def _some(self, mutants: Sequence[Mutant], isolated: bool) -> AsyncGenerator[Result, None]:
        """In a kept copy where that pays: there is one job in each, while cargo-mutants makes a copy for each job.

        The tool's own run without a mutant decides whether it can be isolated: see `Isolation.run`.
        """
        jobs = min(self.jobs, MAX_JOBS, len(mutants))
        few = jobs == 1 or len(mutants) <= MAX_MUTANTS_OF_KEPT_COPY
        keep = few and await in_thread(self.copies.usable)
        if keep:
            try:
                async with contextlib.aclosing(self._in_kept_copy(mutants, isolated)) as results:
                    async for result in results:
                        yield result
                return
            except BaselineError as error:
                log.info("%s; trying again in a copy that cargo-mutants makes", error)
        own = _Place(self.isolation.root, self.root, ["--jobs", str(jobs)], {"CARGO_TARGET_DIR": None}, is_kept=False)
        async with contextlib.aclosing(self._once(mutants, own, isolated)) as results:
            async for result in results:
                if keep:
                    self.copies.give_up()
                yield result

    async def _in_kept_copy(self, mutants: Sequence[Mutant], isolated: bool) -> AsyncGenerator[Result, None]:
        async with self.copies.lease() as copy:
            root = copy.path / self.root.resolve().relative_to(self.isolation.root)
            current = await in_thread(_current, root, mutants)
            packages = frozenset(mutant.handle.package for mutant in current)
            state = await self._state(copy, isolated)
            limit = self.copies.passed.limit((state, await in_thread(_lock, copy)), packages)
            skip = [] if limit is None else [SKIP, "--timeout", limit]
            seen = self.isolation.root if isolated else copy.path
            env = {"CARGO_TARGET_DIR": str(seen / TARGET), "CARGO_MUTANTS_JOBS": None}
            place = _Place(copy.path, root, ["--in-place", *skip], env, is_kept=True)
            if current:
                async with contextlib.aclosing(self._once(current, place, isolated)) as results:
                    async for result in results:
                        yield result
            if place.limit is not None and await in_thread(is_pinned, copy.path):
                self.copies.passed.note((state, await in_thread(_lock, copy)), packages, place.limit)

    async def _state(self, copy: Sandbox, isolated: bool) -> Hashable:
        """Name all that a run without a mutant in `copy` depends on, apart from the lock file, which cargo may make."""
        rustc, settings = await compiler(self.root), await in_thread(self.copies.settings)
        return copy.digest, tuple(rustc), settings, self.isolation.wanted if isolated else None

    async def _once(self, mutants: Sequence[Mutant], place: _Place, isolated: bool) -> AsyncGenerator[Result, None]:
        names = [word for mutant in mutants for word in ("--re", _exactly(mutant.handle.name))]
        arguments = [*self.options, "--no-shuffle", "--caught", "--unviable", *place.arguments, *names]
        async with own_tmpdir() as env:
            directory = Path(env["TMPDIR"] or "")
            due = {mutant.handle.key: mutant for mutant in mutants}
            outcomes = Outcomes(directory / "mutants.out", due, None if place.is_kept else self.root)
            within = partial(self._isolated, directory, place) if isolated else None
            cwd = self.root if isolated else place.root
            if SKIP not in arguments:
                report_phase(BASELINE)  # cargo-mutants builds the tree for it, and may copy it
            async with self.command.running(
                "--output", str(directory), *arguments, cwd=cwd, env={**env, **place.env}, within=within
            ) as tree:
                async with contextlib.aclosing(tree.lines()) as lines:
                    async for line in lines:  # one for each outcome, after that is in outcomes.json
                        place.hear(line)
                        for result in await in_thread(outcomes.new):
                            yield result
                code = await tree.exited()
                if code == BASELINE_FAILED:
                    raise await in_thread(outcomes.baseline_error)
                if code not in SUCCESS:
                    raise self.command.failure(tree)
                for result in await in_thread(outcomes.new):
                    yield result
            await in_thread(self.isolation.note, directory / ISOLATION)

    def _isolated(self, directory: Path, place: _Place, argv: list[str]) -> list[str]:
        """Isolate the run: what it writes elsewhere than into the copy and this directory is dropped."""
        home = directory / ISOLATION
        home.mkdir()
        return self.isolation.command(place.workspace, argv, [directory], home, Around([]))


def _current(root: Path, mutants: Sequence[Mutant]) -> list[Mutant]:
    """Return the mutants whose files, below `root`, are as they were listed."""
    digests = {path: reading.digest(root / path) for path in {mutant.path for mutant in mutants}}
    return [mutant for mutant in mutants if mutant.handle.digest == digests[mutant.path]]


def _lock(copy: Sandbox) -> str | None:
    return reading.digest(copy.path / LOCK)


def _exactly(name: str) -> str:
    """A regular expression, as Rust's crate `regex` reads it, for this name and no other."""
    return "^" + SPECIAL.sub(r"\\\1", name) + "$"


def _reason(log: str) -> str | None:
    panic = PANIC.search(log)
    if panic is not None:
        return panic[1].strip()[:SHOWN_CHARS]
    error = ERROR.search(log)
    return error[0][:SHOWN_CHARS] if error else None
