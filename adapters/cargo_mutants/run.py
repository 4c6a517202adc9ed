"""CargoRun: one run of cargo-mutants on chosen mutants, and what its growing report says of them.

Copies and reports lie in a private temporary directory. What cargo has built of dependencies may be kept for the next
run.
"""

from __future__ import annotations

import contextlib
import json
import logging
import re
import shutil
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from attrs import define, field, frozen

from msp_bridge import reading
from msp_bridge.adapter import BaselineError, Mutant, Project, Result, Status
from msp_bridge.concurrency import in_thread
from msp_bridge.phases import BASELINE, report_phase
from msp_bridge.toolkit import Isolation, Sandbox, SandboxPool, own_tmpdir
from msp_bridge.toolkit.slot import size_of

from .cargo import BASELINE_FAILED, SUCCESS, CargoCommand
from .listing import Key, key_of

log = logging.getLogger(__name__)

MAX_MUTANTS_OF_RUN = 500  # with some thousands of names the tool's regular expression gets too large
MAX_JOBS = 8  # above which cargo-mutants warns: each job is a cargo with many processes
MAX_MUTANTS_OF_KEPT_BUILD = 8  # for which a build from nothing takes longer than testing them one by one
MAX_BUILD_BYTES = 4 << 30  # a directory that has grown beyond is deleted
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
ISOLATION = "isolation"  # in the private directory
SHOWN_CHARS = 1000  # of a reason
SPECIAL = re.compile(r"([\\.+*?()|\[\]{}^$#&~-])")


class BuildDirectories:
    """The directories in which cargo keeps what it has built: each of one run at a time, whichever bridge runs it.

    What cargo keeps of packages in cargo-mutants' copies is never taken for that of a later copy: the files there are
    written anew for each run, and so newer than what was built before. Dependencies stay as they are.
    """

    def __init__(self, project: Project) -> None:
        # Nothing is copied: cargo-mutants does that itself.
        self._places: SandboxPool[Sandbox, Any] = SandboxPool(
            partial(Sandbox.claim, project.cache, project.root, "build")
        )
        self.usable = True  # whether the project's tests pass with build results elsewhere than in `target`

    @contextlib.asynccontextmanager
    async def lease(self) -> AsyncIterator[Path]:
        """A directory; raises `ToolError` when all are in use, or none can be made."""
        async with self._places.lease() as place:
            directory = place.sandbox.path.parent / "msp-bridge-target"
            yield directory
            await in_thread(_limit, directory)

    async def aclose(self) -> None:
        """Let other bridges have them."""
        await self._places.aclose()


@define
class Outcomes:
    """The directory `mutants.out` of one run, while it grows."""

    directory: Path
    due: Mapping[Key, Mutant]
    _seen: int = field(default=0, init=False)

    def new(self) -> list[Result]:
        """Results since the last call. `outcomes.json` is written anew for each: half of one is no report yet."""
        try:
            outcomes = json.loads((self.directory / "outcomes.json").read_bytes())["outcomes"]
        except (FileNotFoundError, ValueError):
            return []
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


@frozen
class CargoRun:
    """A run of cargo-mutants for one request."""

    root: Path  # of the project
    command: CargoCommand
    builds: BuildDirectories
    jobs: int
    options: Sequence[str]
    isolation: Isolation

    async def results(self, mutants: Sequence[Mutant]) -> AsyncGenerator[Result, None]:
        """Results of those of `mutants` whose files are as they were listed, each as soon as cargo-mutants reports it.

        Closing it ends the tool and deletes all that it wrote, apart from builds. Raises `ToolError`.
        """
        for start in range(0, len(mutants), MAX_MUTANTS_OF_RUN):
            current = await in_thread(self._current, mutants[start : start + MAX_MUTANTS_OF_RUN])
            if current:
                await self.isolation.probe()
                run = self.isolation.run(partial(self._some, current))
                async with contextlib.aclosing(run) as results:
                    async for result in results:
                        yield result

    def _current(self, mutants: Sequence[Mutant]) -> list[Mutant]:
        digests = {path: reading.digest(self.root / path) for path in {mutant.path for mutant in mutants}}
        return [mutant for mutant in mutants if mutant.handle.digest == digests[mutant.path]]

    async def _some(self, mutants: Sequence[Mutant], isolated: bool) -> AsyncGenerator[Result, None]:
        """With kept builds where they pay. That takes one job, for jobs that share builds could run each other's.

        The tool's own run without a mutant decides whether it can be isolated: see `Isolation.run`.
        """
        jobs = min(self.jobs, MAX_JOBS, len(mutants))
        keep = self.builds.usable and (jobs == 1 or len(mutants) <= MAX_MUTANTS_OF_KEPT_BUILD)
        if keep:
            try:
                async with (
                    self.builds.lease() as build,
                    contextlib.aclosing(self._once(mutants, 1, build, isolated=isolated)) as results,
                ):
                    async for result in results:
                        yield result
                return
            except BaselineError as error:
                log.info("%s; trying again with a build from nothing", error)
        async with contextlib.aclosing(self._once(mutants, jobs, None, isolated=isolated)) as results:
            async for result in results:
                if keep:
                    self.builds.usable = False
                yield result

    async def _once(
        self, mutants: Sequence[Mutant], jobs: int, build: Path | None, *, isolated: bool
    ) -> AsyncGenerator[Result, None]:
        names = [word for mutant in mutants for word in ("--re", _exactly(mutant.handle.name))]
        arguments = [*self.options, "--no-shuffle", "--caught", "--unviable", "--jobs", str(jobs), *names]
        async with own_tmpdir() as env:
            directory = Path(env["TMPDIR"] or "")
            outcomes = Outcomes(directory / "mutants.out", {mutant.handle.key: mutant for mutant in mutants})
            env["CARGO_TARGET_DIR"] = None if build is None else str(build)
            within = partial(self._isolated, directory, build) if isolated else None
            report_phase(BASELINE)  # cargo-mutants copies and builds the tree for it
            async with self.command.running("--output", str(directory), *arguments, env=env, within=within) as tree:
                began = False
                async with contextlib.aclosing(tree.lines()) as lines:
                    async for _ in lines:  # one for each outcome, after that is in outcomes.json
                        if not began:  # the copies are made by now: what was edited until then is another mutant's
                            current = await in_thread(self._current, mutants)
                            outcomes.due, began = {mutant.handle.key: mutant for mutant in current}, True
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

    def _isolated(self, directory: Path, build: Path | None, argv: list[str]) -> list[str]:
        """Isolate the run: what it writes elsewhere than into these directories is dropped."""
        home = directory / ISOLATION
        home.mkdir()
        if build is not None:
            build.mkdir(parents=True, exist_ok=True)
        return self.isolation.command(self.isolation.root, argv, [directory, *([] if build is None else [build])], home)


def _exactly(name: str) -> str:
    """A regular expression, as Rust's crate `regex` reads it, for this name and no other."""
    return "^" + SPECIAL.sub(r"\\\1", name) + "$"


def _limit(directory: Path) -> None:
    if size_of(directory) > MAX_BUILD_BYTES:
        shutil.rmtree(directory, ignore_errors=True)


def _reason(log: str) -> str | None:
    panic = PANIC.search(log)
    if panic is not None:
        return panic[1].strip()[:SHOWN_CHARS]
    error = ERROR.search(log)
    return error[0][:SHOWN_CHARS] if error else None
