"""Results beside what fresh processes say of the same mutants: which differ, and which do by chance.

A test that fails by chance makes both sides wrong: where a fresh process and a result differ, the mutant is tested
twice more, and only what is said three times is called a difference; the rest is `unsteady`.
"""

import asyncio
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, MutableMapping, Sequence

from attrs import frozen

from msp_bridge.adapter import HasFreshResults, Mutant, Result, Status


@frozen
class Verdict:
    """The verdict of the tests in a fresh process."""

    status: Status  # of `Oracle`: KILLED, SURVIVED, TIMEOUT or, for a mutant that can't be written, RUNTIME_ERROR
    reason: str  # "a test failed", "no answer in 12 s"
    output: str = ""  # the end of what the tests print


@frozen
class Difference:
    """A result that a fresh process does not give."""

    result: Result
    verdict: Verdict
    by_chance: bool = False  # another fresh process gives it

    def __str__(self) -> str:
        mutant = self.result.mutant
        place = f"{mutant.path}:{mutant.location.start}"
        return (
            f"{place} {mutant.mutator} ({mutant.replacement!r}): {self.result.status.value}, "
            f"but {self.verdict.status.value} in a fresh process ({self.verdict.reason})"
            f"{', by chance: another one agrees' * self.by_chance}"
        )


@frozen
class Verification:
    """The outcome of checking some results."""

    checked: int  # results
    differences: tuple[Difference, ...]
    unsteady: tuple[Difference, ...]  # fresh processes give varying results


class FreshProcesses(ABC):
    """Fresh processes that test mutants."""

    @abstractmethod
    async def verdict_on(self, result: Result) -> Verdict:
        """The verdict of a fresh process on the mutant of `result`."""

    def agrees(self, result: Result, verdict: Verdict) -> bool:
        """Whether they say the same. Timeout and Killed are both detected; NoCoverage and Survived are both not."""
        ours, fresh = result.status, verdict.status
        return (ours.detected, ours.undetected) == (fresh.detected, fresh.undetected)

    async def confirms(self, result: Result, verdict: Verdict) -> bool:
        """Whether they say the same, as far as another look can tell."""
        return self.agrees(result, verdict)

    async def compare(
        self,
        results: Sequence[Result],
        count: int | None = None,
        seed: int = 0,
        jobs: int = 1,
        known: MutableMapping[Mutant, Verdict] | None = None,
        report: Callable[[Difference | None], object] = lambda _difference: None,
    ) -> Verification:
        """Check `count` of the results (all by default), drawn by `seed`; `jobs` at a time.

        `report` is called for each as soon as it is checked: with None for one that is confirmed. `known` takes the
        first verdicts, and spares mutants that it has: for several runs on one source. Results that say nothing of the
        tests (Ignored, Pending …) are not drawn.
        """
        drawn = [result for result in results if is_verifiable(result)]
        if count is not None and count < len(drawn):
            drawn = random.Random(seed).sample(drawn, count)  # noqa: S311
        turn = asyncio.Semaphore(jobs)

        known = {} if known is None else known

        async def check(result: Result) -> tuple[list[Difference], list[Difference]]:
            async with turn:
                if result.mutant not in known:
                    known[result.mutant] = await self.verdict_on(result)
                verdicts = [known[result.mutant]]
                if await self.confirms(result, verdicts[0]):
                    report(None)
                    return [], []
                verdicts += [await self.verdict_on(result) for _ in range(2)]
            by_chance = any(self.agrees(result, verdict) for verdict in verdicts)
            difference = Difference(result, verdicts[0], by_chance)
            report(difference)
            return ([], [difference]) if by_chance else ([difference], [])

        async with asyncio.TaskGroup() as group:
            checks = [group.create_task(check(result)) for result in drawn]
        found = [each.result() for each in checks]
        return Verification(
            len(drawn),
            tuple(difference for different, _ in found for difference in different),
            tuple(difference for _, unsteady in found for difference in unsteady),
        )


@frozen
class FreshTool(FreshProcesses):
    """The tool itself, where its mutants are no text that could be written into a file."""

    adapter: HasFreshResults

    async def verdict_on(self, result: Result) -> Verdict:
        """The tool's verdict on the mutant of `result`."""
        return (await self.verdicts([result]))[result.mutant]

    async def verdicts(self, results: Sequence[Result]) -> dict[Mutant, Verdict]:
        """The tool's verdicts on all their mutants, which takes less than one by one."""
        found = {fresh.mutant: fresh for fresh in await self.adapter.fresh_results(results)}
        return {result.mutant: _verdict(found.get(result.mutant)) for result in results}


def _verdict(result: Result | None) -> Verdict:
    if result is None:
        return Verdict(Status.IGNORED, "the tool does not list it")
    killed_by = f"killed by {result.killed_by[0]}" if result.killed_by else "by the tool itself"
    return Verdict(result.status, result.status_reason or killed_by)


def is_verifiable(result: Result) -> bool:
    """Whether a result says something that a fresh process can contradict."""
    status = result.status
    return status.detected or status.undetected or status is Status.RUNTIME_ERROR
