"""ShortRun: which of the selected mutants a run tests, in which order, and when it stops before the end.

A sample is systematic: mutants are sorted by file and mutator, and every N-th is taken from a random start. So each
file and each mutator has its share, and the score of the sample estimates that of all without bias.
"""

import math
import re
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from itertools import groupby

import click
from attrs import frozen

from msp_bridge.cli.known import MUTATOR, STATUS
from msp_bridge.last_results import KnownResults, of_mutator
from msp_bridge.model import Mutant, Status
from msp_bridge.reports.kept import SECONDS, TESTED
from msp_bridge.reports.results import Score
from msp_bridge.reports.standard import Report, reported_mutants
from msp_bridge.text import counted
from msp_bridge.workspace.targets import Changes

SAMPLE = re.compile(r"(?P<count>[1-9]\d*)|(?P<percent>\d+(?:\.\d+)?)\s*%")
BUDGET = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?")
UNITS_S = (3600, 60, 1)
Z = 1.96  # of a confidence of 95 %
LONG_S = 60.0  # a run that takes longer is announced
ENOUGH = 10  # mutants that a run has tested, to estimate from what it took


def _sample(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    match = SAMPLE.fullmatch(value or "1")
    if match is None or (match["percent"] is not None and not 0 < float(match["percent"]) <= 100):
        raise click.BadParameter(f"{value!r} is no number of mutants, as 50, and no part of them, as 10%")
    return value


def _budget(_: click.Context, __: click.Parameter, value: str | None) -> float | None:
    if value is None:
        return None
    match = BUDGET.fullmatch(value)
    seconds = 0 if match is None else sum(int(n or 0) * unit for n, unit in zip(match.groups(), UNITS_S, strict=True))
    if not seconds:
        raise click.BadParameter(f"{value!r} is no time, as 90s, 5m or 1h30m")
    return float(seconds)


OPTIONS: list[click.Parameter] = [
    STATUS,
    MUTATOR,
    click.Option(
        ["--sample"],
        callback=_sample,
        metavar="N|P%",
        help="Test N mutants, or P percent, spread over files and mutators; the score has its confidence interval.",
    ),
    click.Option(["--seed"], type=int, default=0, metavar="N", help="Another sample for another N."),
    click.Option(
        ["--budget"],
        callback=_budget,
        metavar="TIME",
        help="Stop after TIME (90s, 5m, 1h30m): changed lines first, then what was not tested for longest.",
    ),
    click.Option(["--fail-fast"], is_flag=True, help="Stop at the first survivor that is not accepted, and fail."),
]


@frozen
class ShortRun:
    """The values of these options."""

    status: frozenset[Status] | None = None
    mutator: str | None = None
    sample: str | None = None
    seed: int = 0
    budget: float | None = None  # s
    fail_fast: bool = False

    @property
    def takes_all(self) -> bool:
        """Whether every selected mutant is tested, unless the run is stopped."""
        return self.status is None and self.mutator is None and self.sample is None

    def chosen(self, mutants: Sequence[Mutant], known: KnownResults) -> list[Mutant]:
        """The mutants to test, in their order. Raises CommandLineError when no run is kept that `status` is about."""
        found = [mutant for mutant in mutants if of_mutator(mutant, self.mutator)]
        if self.status is not None:
            before = {last.mutant for last in known.wanted(only=self.status)}
            found = [mutant for mutant in found if mutant in before]
        if self.sample is None:
            return found
        taken = _systematic(found, _size(self.sample, len(found)), self.seed)
        return [mutant for mutant in found if mutant in taken]

    def interval(self, score: Score, mutants: int) -> str | None:
        """The confidence interval of a sample's `score`, in one line; `mutants` could have been in it."""
        tested = score.detected + score.undetected
        if self.sample is None or not tested or score.counts.total() >= mutants:
            return None
        low, high = wilson(score.detected, tested)
        sample = f"sample          {score.counts.total()} of {counted(mutants, 'mutant')}, seed {self.seed}"
        return f"{sample}; 95 % confidence: {100 * low:.1f} to {100 * high:.1f} %"


def wilson(hits: int, of: int) -> tuple[float, float]:
    """Wilson's interval of a share, from 0 to 1, with a confidence of 95 %."""
    share, square = hits / of, Z * Z / of
    middle, half = share + square / 2, Z * math.sqrt(share * (1 - share) / of + square / of / 4)
    return max(0.0, (middle - half) / (1 + square)), min(1.0, (middle + half) / (1 + square))


def in_order(mutants: Iterable[Mutant], changes: Changes | None, kept: Sequence[Report]) -> list[list[Mutant]]:
    """Groups of `mutants`, in the order in which a budget is spent on them.

    First mutants on changed lines, then mutants that no kept run has tested, then the oldest run's. `kept` has the
    newest run first.
    """
    tested = {
        fields["id"]: age
        for age, report in reversed(list(enumerate(kept)))
        for fields in reported_mutants(report)
        if fields["status"] != Status.PENDING.value
    }

    def rank(mutant: Mutant) -> int:
        if changes is not None and changes.touch(mutant):
            return -1
        return len(kept) - tested.get(mutant.id, len(kept))

    return [list(group) for _, group in groupby(sorted(mutants, key=rank), key=rank)]


def estimate(mutants: Sequence[Mutant], kept: Sequence[Report]) -> str | None:
    """How long it takes to test `mutants`, by what earlier runs took; None when that is short, or not known."""
    runs = [report.get("config", {}) for report in kept]
    timed = [config for config in runs if config.get(TESTED, 0) >= ENOUGH]
    if not timed:
        return None
    statuses = {fields["id"]: fields["status"] for report in reversed(kept) for fields in reported_mutants(report)}
    without = sum(statuses.get(mutant.id) == Status.NO_COVERAGE.value for mutant in mutants)
    seconds = (len(mutants) - without) * timed[0][SECONDS] / timed[0][TESTED]
    if seconds < LONG_S:
        return None
    tests = f", {without} without tests" if without else ""
    return f"about {seconds / 60:.0f} min: {counted(len(mutants), 'mutant')}{tests}"


def _size(sample: str, of: int) -> int:
    match = SAMPLE.fullmatch(sample)
    assert match is not None
    return min(of, int(match["count"]) if match["count"] else math.ceil(of * float(match["percent"]) / 100))


def _systematic(mutants: Sequence[Mutant], size: int, seed: int) -> set[Mutant]:
    """Every N-th of `mutants`, sorted by file and mutator, and in random order within."""
    if not size:
        return set()
    shuffled = sorted(mutants, key=lambda mutant: (mutant.path, mutant.mutator, _chance(seed, mutant.id)))
    start = _chance(seed, "")
    return {shuffled[int((start + number) * len(shuffled) / size)] for number in range(size)}


def _chance(seed: int, name: str) -> float:
    """A number from 0 to below 1 that is the same each time, on every machine."""
    return int.from_bytes(blake2b(f"{seed} {name}".encode(), digest_size=6).digest()) / 2**48
