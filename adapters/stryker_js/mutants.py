"""Mutants and results as StrykerJS writes them, and the handles by which `test` knows what `discover` saw."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from attrs import field, frozen

from msp_bridge.adapter import ConfigurationError, Mutant, Status
from msp_bridge.rows import reported_location

Raw = Mapping[str, Any]
Tested = tuple[Mutant, Raw]  # a mutant, and what StrykerJS reports of it


@frozen
class StrykerJsHandle:
    """`Mutant.handle`: what testing needs to know of the discovery."""

    digest: str | None  # of the content of the file that the mutant was found in
    ignored: str | None = None  # why StrykerJS won't test it


@frozen
class StrykerJsTestPlan:
    """The mutants that one run tests: no others."""

    mutants: Sequence[Mutant]

    @property
    def paths(self) -> list[str]:
        """Their files, each once."""
        return list(dict.fromkeys(mutant.path for mutant in self.mutants))


@frozen
class StrykerJsListing:
    """Mutants that StrykerJS finds in the files of a request."""

    found: Sequence[tuple[Mutant, str | None]] = ()  # each with the reason why it is ignored, if it is
    broken: Mapping[str, str] = field(factory=dict)  # files that can't be instrumented, and why
    patterns: Sequence[str] = ()  # `mutate` of the configuration
    matched: Collection[str] = frozenset()  # the files that match these
    missing_runner: ConfigurationError | None = None  # when no plugin offers the configured test runner
    threshold: float | None = None  # `thresholds.break` of the configuration
    unknown: Mapping[str, str] = field(factory=dict)  # options of the configuration that nothing knows, with remedies
    runner: str | None = None  # the test runner that is configured; None where that wasn't asked


def unknown_option(name: str) -> str:
    """The problem with an option of StrykerJS's configuration that nothing knows."""
    return f"neither StrykerJS nor a plugin of its configuration has an option {name!r}"


def mutant_of(path: str, raw: Raw) -> Mutant:
    """The mutant that StrykerJS reports of `path`."""
    return Mutant(path, raw["mutatorName"], reported_location(raw["location"]), raw.get("replacement") or "")


def ignored_because(raw: Raw) -> str | None:
    """Why StrykerJS won't test the mutant, if it won't."""
    if raw.get("status") != Status.IGNORED.value:
        return None
    return str(raw.get("statusReason") or "ignored by StrykerJS's configuration")
