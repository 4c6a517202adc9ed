"""Remarks beside the results: what about the tests explains the verdicts, or how long they take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msp_bridge.notices import Notice, Remark
from msp_bridge.python_engine.programs.messages import Summary
from msp_bridge.text import counted

COSTLY_S = 5.0  # that tests which start Python processes take together


def of_tests(answer: Summary) -> dict[Notice, None]:
    """Remarks on the tests, from the host's summary."""
    remarks = of_unsteady(answer["unsteady"])
    if why := answer["always_fresh"]:
        remarks[Remark(f"every mutant is tested in a process that imports everything anew: {why}")] = None
    for test in answer["fork_unsafe"]:
        remarks[Remark(f"{test} passes in a fresh process only: mutants that it covers are tested there")] = None
    return remarks | _of_starting(answer["starting"])


def of_unsteady(tests: Sequence[str]) -> dict[Notice, None]:
    """A remark for each test that can't be relied on."""
    what = "does not always pass without any mutant, or fails on a busy machine"
    return {
        Remark(f"{test} {what}: each mutant that it kills is tested again while nothing else runs"): None
        for test in tests
    }


def _of_starting(tests: Mapping[str, float]) -> dict[Notice, None]:
    """A remark on the tests that start Python processes, with the seconds that each takes, where they take long."""
    seconds = sum(tests.values())
    if seconds < COSTLY_S:
        return {}
    who = f"{counted(len(tests), 'test')} with Python processes (such as {max(tests, key=tests.__getitem__)})"
    why = "what runs in them is not seen: leave out tests that others make up for"
    return {Remark(f"{who} take {seconds:.0f} s for each mutant that no other test kills; {why}"): None}
