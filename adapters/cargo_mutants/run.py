"""Run: one run of cargo-mutants on chosen mutants, whose copies and reports lie in a private temporary directory."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import shutil
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from pathlib import Path

from attrs import frozen

from msp_bridge.adapter import Mutant, Result, ToolError

from .builds import Builds
from .command import BASELINE_FAILED, SUCCESS, Command
from .listing import Sources
from .outcomes import Outcomes

log = logging.getLogger(__name__)

AT_ONCE = 500  # mutants in one run: with some thousands of names the tool's regular expression gets too large
MOST_JOBS = 8  # above which cargo-mutants warns, for each job is a cargo with many processes
FEW = 8  # mutants for which a build from nothing takes longer than testing them one by one
SPECIAL = re.compile(r"([\\.+*?()|\[\]{}^$#&~-])")


class BaselineFailed(ToolError):
    """The tests fail without any mutant."""


@frozen
class Run:
    """What a request needs of cargo-mutants."""

    command: Command
    sources: Sources
    builds: Builds
    jobs: int
    options: Sequence[str]

    async def results(self, mutants: Sequence[Mutant]) -> AsyncGenerator[Result, None]:
        """Results of `mutants`, and perhaps of others, each as soon as cargo-mutants says so.

        Closing it ends the tool and deletes all that it wrote, apart from builds. Raises `ToolError`.
        """
        for start in range(0, len(mutants), AT_ONCE):
            async with contextlib.aclosing(self._some(mutants[start : start + AT_ONCE])) as results:
                async for result in results:
                    yield result

    async def _some(self, mutants: Sequence[Mutant]) -> AsyncGenerator[Result, None]:
        """With kept builds where they pay. That takes one job, for jobs that share builds could run each other's."""
        jobs = min(self.jobs, MOST_JOBS, len(mutants))
        keep = self.builds.suit and (jobs == 1 or len(mutants) <= FEW)
        if keep:
            try:
                async with self.builds.lease() as build, contextlib.aclosing(self._once(mutants, 1, build)) as results:
                    async for result in results:
                        yield result
                return
            except BaselineFailed as error:
                log.info("%s; trying again with a build from nothing", error)
        async with contextlib.aclosing(self._once(mutants, jobs, None)) as results:
            async for result in results:
                if keep:
                    self.builds.suit = False
                yield result

    async def _once(self, mutants: Sequence[Mutant], jobs: int, build: Path | None) -> AsyncGenerator[Result, None]:
        names = [word for mutant in mutants for word in ("--re", _exactly(mutant.handle.name))]
        arguments = [*self.options, "--no-shuffle", "--caught", "--unviable", "--jobs", str(jobs), *names]
        async with _private_directory() as directory:
            outcomes, changed = Outcomes(directory / "mutants.out", self.sources), None
            env: dict[str, str | None] = dict.fromkeys(("TMPDIR", "TMP", "TEMP"), str(directory))
            env["CARGO_TARGET_DIR"] = None if build is None else str(build)
            async with self.command.running("--output", str(directory), *arguments, env=env) as tree:
                async with contextlib.aclosing(tree.lines()) as lines:
                    async for _ in lines:  # one for each outcome, after that is in outcomes.json
                        for result in await asyncio.to_thread(outcomes.new):
                            if changed is None:  # cargo-mutants has copied the project by now
                                changed = await asyncio.to_thread(self.sources.changed)
                            if result.mutant.path not in changed:
                                yield result
                code = await tree.exited()
                if code == BASELINE_FAILED:
                    failure = await asyncio.to_thread(outcomes.baseline_failure)
                    raise BaselineFailed(f"the tests fail without any mutant: {failure}; make `cargo test` pass first")
                if code not in SUCCESS:
                    raise self.command.failure(tree)
                for result in await asyncio.to_thread(outcomes.new):
                    if result.mutant.path not in (changed or ()):
                        yield result


def _exactly(name: str) -> str:
    """A regular expression, as Rust's crate `regex` reads it, for this name and no other."""
    return "^" + SPECIAL.sub(r"\\\1", name) + "$"


@contextlib.asynccontextmanager
async def _private_directory() -> AsyncIterator[Path]:
    """Not below the cache, whose long name would leave tests too little for that of a socket (108 characters)."""
    directory = Path(tempfile.mkdtemp(prefix="msp-bridge-"))
    try:
        yield directory
    finally:
        await asyncio.to_thread(shutil.rmtree, directory, ignore_errors=True)
