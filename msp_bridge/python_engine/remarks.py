"""Remarks beside the results: what about the tests explains the verdicts, or how long they take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msp_bridge.notices import Notice, Remark
from msp_bridge.python_engine.programs.messages import Summary
from msp_bridge.text import counted

COSTLY_S = 5.0  # that tests which start Python processes take together


def of_tests(answer: Summary) -> Iterator[Notice]:
    """Remarks on the tests, from the host's summary."""
    yield from of_unsteady(answer["unsteady"])
    if why := answer["always_fresh"]:
        yield Remark(f"every mutant is tested in a process that imports everything anew: {why}")
    for test in answer["fork_unsafe"]:
        yield Remark(f"{test} passes in a fresh process only: mutants that it covers are tested there")
    seconds = sum(answer["starting"].values())
    if seconds >= COSTLY_S:
        longest = max(answer["starting"], key=answer["starting"].__getitem__)
        one = len(answer["starting"]) == 1
        named = f"({longest}) takes" if one else f"(such as {longest}) take"
        who = f"{counted(len(answer['starting']), 'test')} with Python processes or tracing functions {named}"
        why = "what runs in them is not seen: leave out tests that others make up for"
        yield Remark(f"{who} {seconds:.0f} s for each mutant that no other test kills; {why}")


def of_unsteady(tests: Sequence[str]) -> Iterator[Notice]:
    """A remark for each test that can't be relied on."""
    what = "does not always pass without any mutant, or fails on a busy machine"
    for test in tests:
        yield Remark(f"{test} {what}: each mutant that it kills is tested again while nothing else runs")
