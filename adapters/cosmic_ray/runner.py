"""CommandRunner: tests mutants by a test command that isn't pytest: each mutant by one run of it, in a private copy.

Before the first mutant there must be proof that the command tests the copy (`CommandProof`). A result belongs to the
content that the mutant was discovered in: if the file in the copy has another digest, there is no result. A mutant
whose run was killed by some other process is tested once more, and no more than that: it may be what ends them.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from functools import partial

from msp_bridge.adapter import Mutant, Notice, Project, Result, Status
from msp_bridge.notices import Remark
from msp_bridge.toolkit import (
    CommandOfTests,
    CommandProof,
    CommandRun,
    Isolation,
    JobScheduler,
    RunPlaces,
    Sandbox,
    Stale,
)
from msp_bridge.toolkit.command_proof import NO_TEXT

from .command import TestCommand

ATTEMPTS = 2  # for a mutant whose run was killed by some other process
SANDBOXES_PER_JOB = 8  # how many bridges may work on one project
SANDBOX = "command"  # not the engine's: beside those lies a pytest.ini, which would change the names of tests
MADE_BY_MUTMUT = frozenset({"mutants"})  # many a project has both; deeper down it may be somebody's package


class CommandRunner:
    """The copies of one project for its test command, in which mutants are tested as `JobScheduler` has them follow."""

    def __init__(self, project: Project) -> None:
        jobs = max(1, project.jobs)
        limit = SANDBOXES_PER_JOB * jobs
        claim = partial(Sandbox.claim, project.cache, project.root, SANDBOX, left_out=MADE_BY_MUTMUT, limit=limit)
        self._places = RunPlaces(project.root, claim, max_idle=jobs)
        self._isolation = Isolation.of("cosmic-ray", project.root, network=False)
        self._scheduler = JobScheduler(lambda: project.jobs)
        self._proof = CommandProof()

    async def test(self, mutants: Sequence[Mutant], command: TestCommand) -> AsyncGenerator[Result | Notice, None]:
        """A result for each mutant whose file has not changed since; see `Adapter.test`."""
        told = False
        work = partial(self._test, object(), command.of_tests)
        async with aclosing(self._scheduler.run(mutants, work)) as results:
            async for result in results:
                if self._proof.remark and not told:
                    told = True
                    yield Remark(self._proof.remark)
                if result is not None:
                    yield result

    async def aclose(self) -> None:
        """Give the copies back."""
        await self._places.aclose()

    async def _test(self, request: object, command: CommandOfTests, mutant: Mutant) -> Result | None:
        """The result; None when the file in the copy isn't the one that was mutated."""
        files = {mutant.path: (mutant.handle.source.digest, mutant.handle.content)}
        for _ in range(ATTEMPTS):
            async with self._places.lease(self._isolation, request) as place:
                await self._proof.prove(place, command)
                try:
                    run = await self._proof.run(place, command, files)
                except Stale:
                    return None
            if not run.was_killed:
                break
        return _result(mutant, run)


def _result(mutant: Mutant, run: CommandRun) -> Result:
    """The result of the run with the mutant in place."""
    status: Status = Status.KILLED
    reason: str | None = run.reason
    if run.timed_out:
        status, reason = Status.TIMEOUT, "the tests took longer than `timeout`"
    elif not run.is_text:  # cosmic-ray fails to decode it: incompetent
        status, reason = Status.RUNTIME_ERROR, NO_TEXT
    elif run.passed:
        status, reason = Status.SURVIVED, None
    return Result(
        mutant,
        status,
        duration=run.duration_ms,
        killed_by=run.failed or None,
        status_reason=reason,
        tests_completed=run.completed,
    )
