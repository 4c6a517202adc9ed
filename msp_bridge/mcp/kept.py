"""Answers for agents from the last results of `msp-bridge run`, and which survivor comes next."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from msp_bridge.errors import ConfigurationError
from msp_bridge.isolation.left_out import ACCEPTED
from msp_bridge.last_results import KnownResults, statuses_named
from msp_bridge.mcp.answers import (
    MAX_NAME,
    AcceptedMutant,
    LastResults,
    MutantAnswer,
    NextSurvivor,
    ShownMutant,
    fitting,
)
from msp_bridge.mcp.known_mutants import Found
from msp_bridge.mcp.tools import NextArguments, ResultsArguments
from msp_bridge.model import Result, Status
from msp_bridge.reports.results import MutantContent, Score, most_telling
from msp_bridge.text import shortened
from msp_bridge.workspace.targets import select

Candidates = Mapping[str, tuple[Found, Result]]  # by id


def last_results(root: Path, arguments: ResultsArguments) -> LastResults:
    """The kept results that are selected. Raises ConfigurationError."""
    names = arguments.named("status")
    only = None if names is None else statuses_named(names)
    wanted = KnownResults(root).wanted(arguments.named("paths") or (), only, arguments.mutator)
    score = Score.of(last.result for last in wanted)
    answers = (
        MutantAnswer.of(last.mutant, last.result, last.source, outdated=last.stale)
        for last in wanted[: arguments.limit]
    )
    return LastResults(
        total=len(wanted),
        counts={status.value: count for status, count in score.counts.items()},
        score=score.percent,
        mutants=fitting(answers),
    )


def next_survivor(root: Path, own: Candidates, arguments: NextArguments) -> NextSurvivor:
    """The most telling survivor of the server's `own` results and of the kept ones. Raises ConfigurationError."""
    known = KnownResults(root)
    kept = known.wanted() if known.kept.last() is not None else []
    found: dict[str, tuple[Found, Result]] = {
        last.mutant.id: (Found(last.mutant, last.source, 0), last.result) for last in kept if not last.stale
    }
    found |= {id: (each, known.accepted.judged(result)) for id, (each, result) in own.items()}
    if not found:
        raise ConfigurationError("there are no results yet", "call test_mutants")
    results = [result for _, result in found.values()]
    wanted = select(root, arguments.named("paths") or ()).takes
    missed = [each for each in most_telling(results) if each.mutant.id not in arguments.skip and wanted(each.mutant)]
    if not missed:
        raise ConfigurationError("no survivor is left here", "nothing is to do; test_mutants has newer results")
    shown = ShownMutant.of(found[missed[0].mutant.id][0], missed[0], ())
    hint = _hint(missed[0], results)
    return NextSurvivor(**shown.model_dump(), hint=hint, remaining=len(missed) - 1)


def accepted(root: Path, id: str, result: Result | None, reason: str) -> AcceptedMutant:
    """Accept the mutant with this id, which has the server's `result`, or a kept one. Raises ConfigurationError."""
    known = KnownResults(root)
    added: Sequence[MutantContent]
    if result is None:
        added = known.accept(known.named([id]), reason)
    else:
        content = known.accepted.content(result.mutant)
        if not result.status.undetected or content is None:
            raise ConfigurationError(f"it is {result.status.value}, and only a survivor is accepted", "test it again")
        added = known.accepted.accept([(content, result.mutant.mutator)], reason)
    return AcceptedMutant(file=ACCEPTED, written=bool(added))


def _hint(result: Result, results: Iterable[Result]) -> str:
    """Name the test that is the most about the mutant's code: it runs the fewest other mutants."""
    runs = Counter(test for each in results for test in each.covered_by or ())
    if result.covered_by:
        nearest = min(result.covered_by, key=lambda test: (runs[test], test))
        return f"Add an assertion to {shortened(nearest, MAX_NAME)}, or a test beside it: it runs the least other code."
    line = result.mutant.location.start.line
    near = [each for each in results if each.mutant.path == result.mutant.path and each.covered_by]
    if result.status is Status.NO_COVERAGE and near:
        closest = min(near, key=lambda each: abs(each.mutant.location.start.line - line))
        test = shortened((closest.covered_by or ("",))[0], MAX_NAME)
        return f"No test runs this code; {test} runs line {closest.mutant.location.start.line}: add a test beside it."
    return "No test is known that runs this code: write one that calls it, and assert what it returns or changes."
