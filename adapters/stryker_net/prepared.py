"""The result of one preparation: the mutants, the tests without a mutant, and where both can be run."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import asdict, define, field, frozen

from msp_bridge.adapter import Mutant, Remark, Status, ToolError

from .hosts import USE_THE_TOOL, Case, Hosts, HostsUnavailable
from .plan import Base, StrykerNetPlan
from .report import ReportEntry

BASELINE_TIMEOUT_S = 1800.0


@frozen
class StrykerNetBaseline:
    """The tests without a mutant."""

    cases: Mapping[str, Case]  # by id
    startup_s: float  # of the run, without the tests
    failing: Mapping[str, str] = field(factory=dict)  # what each failing test prints, by its name
    # By assembly, the mutants whose code runs where its tests are looked for.
    discovery: Mapping[str, Sequence[int]] = field(factory=dict)

    def covering(self, entry: ReportEntry) -> tuple[Case, ...]:
        """The tests to run for a mutant; empty when the tests that reach it fail without it."""
        known = [self.cases[test] for test in entry.covered_by if test in self.cases] or self.cases.values()
        return tuple(case for case in known if not case.failed)

    def anew(self, entry: ReportEntry) -> frozenset[str]:
        """The assemblies whose tests may be others, or have other data, with the mutant."""
        return frozenset(source for source, met in self.discovery.items() if entry.id in met)

    def of(self, sources: Collection[str]) -> tuple[Case, ...]:
        """All tests of the assemblies `sources` that pass without a mutant."""
        return tuple(case for case in self.cases.values() if case.source in sources and not case.failed)


@define(eq=False)
class PreparedBase:
    """The results of preparing one base."""

    base: Base
    content: Mapping[str, Any]  # the tool's report
    entries: Sequence[ReportEntry]
    assemblies: Sequence[Path]  # of tests; none when there is nothing to test, or it can't be tested in hosts
    hosts: Hosts
    extra_s: float
    starters: frozenset[str] = frozenset()  # those of `assemblies` whose tests start programs
    computed: frozenset[str] = frozenset()  # those whose tests have data that code computes, before any test runs
    baseline: StrykerNetBaseline | None = None
    pass_alone: set[str] = field(factory=set, init=False)  # names of tests that have killed a mutant

    def is_tested(self, entry: ReportEntry) -> bool:
        """Whether the mutant of `entry` needs tests. What they start or are made of may run it without coverage."""
        return entry.pending or (bool(self.starters | self.computed) and entry.status is Status.NO_COVERAGE)


@define(eq=False)
class Prepared:
    """The state of the copy."""

    plan: StrykerNetPlan
    parts: Sequence[PreparedBase]
    digests: Mapping[str, str | None]  # of each file with mutants
    page: bool  # whether it comes of the tool's page: with what needs no test, and with covering tests
    by_tool: str | None  # None: test hosts test; else why the tool itself does, empty where the user wants that
    remarks: Sequence[Remark] = ()  # on mutants that are left out
    is_measured_ahead: bool = field(init=False, default=False)  # or was, or has failed to be
    found: Mapping[Mutant, tuple[PreparedBase, ReportEntry]] = field(init=False)
    listed: Mapping[str, Sequence[Mutant]] = field(init=False)  # by file, without what the user excluded

    def __attrs_post_init__(self) -> None:
        found: dict[Mutant, tuple[PreparedBase, ReportEntry]] = {}
        listed: dict[str, list[Mutant]] = {}
        for part in self.parts:
            for entry in part.entries:
                if entry.mutant not in found:  # two test projects may share one under test
                    found[entry.mutant] = part, entry
                    if not entry.excluded:
                        listed.setdefault(entry.mutant.path, []).append(entry.mutant)
        self.found, self.listed = found, dict(sorted(listed.items()))

    @property
    def kept(self) -> list[Any]:
        """The JSON value that `kept_parts` reads: whether it is of a page, then the reports with known baselines."""
        return [self.page, *([part.content, _row(part.baseline)] for part in self.parts)]

    def entry(self, mutant: Mutant) -> tuple[PreparedBase, ReportEntry] | None:
        """The entry of `mutant`; None when its file has changed since the mutant was discovered."""
        if self.digests.get(mutant.path) != mutant.handle:
            return None
        return self.found.get(mutant)


def kept_parts(value: Any) -> tuple[bool, list[tuple[Mapping[str, Any], StrykerNetBaseline | None]]]:
    """`Prepared.page`, and each part with its report and baseline. Raises ValueError, KeyError, TypeError."""
    page, *parts = value
    return bool(page), [(content, _baseline(row)) for content, row in parts]


async def measure(part: PreparedBase) -> StrykerNetBaseline:
    """Run all tests without a mutant. Raises `ToolError`, and `HostsUnavailable` where the tool itself has to test."""
    outcome, cases = await part.hosts.baseline(part.assemblies, BASELINE_TIMEOUT_S)
    if outcome.fault is not None:  # once more: a process may have been killed from outside
        outcome, cases = await part.hosts.baseline(part.assemblies, BASELINE_TIMEOUT_S)
    if outcome.timed_out:
        raise ToolError(f"the tests don't end within {BASELINE_TIMEOUT_S:.0f} s without any mutant", "make them end")
    if outcome.fault is not None:
        raise HostsUnavailable(f"the tests can't be run without a mutant ({outcome.fault})", USE_THE_TOOL)
    known = {case.id: case for case in cases}
    named = {test for entry in part.entries for test in entry.covered_by}
    if not known or (named and named.isdisjoint(known)):
        raise HostsUnavailable("the tests that Stryker.NET names are not found in the assemblies", USE_THE_TOOL)
    startup_s = max(0.0, outcome.seconds - sum(case.seconds for case in cases))
    discovery = {str(file): await part.hosts.met_by_discovery(file) for file in map(Path, sorted(part.computed))}
    return StrykerNetBaseline(known, startup_s, dict(outcome.failures), discovery)


def _row(baseline: StrykerNetBaseline | None) -> Mapping[str, Any] | None:
    if baseline is None:
        return None
    return {**asdict(baseline), "cases": [asdict(case) for case in baseline.cases.values()]}


def _baseline(row: Mapping[str, Any] | None) -> StrykerNetBaseline | None:
    if row is None:
        return None
    return StrykerNetBaseline(**{**row, "cases": {case["id"]: Case(**case) for case in row["cases"]}})
