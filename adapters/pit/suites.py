"""Suite: all tests of a module, which decide where the covering ones can't.

Theory of operation
-------------------
The problem. Tests share a JVM in a real run. The first of them computes what a static field keeps for all others, so it
alone covers that code; a later test that looks at the value is no test of the mutant. And a test may need what another
one has left: alone it fails, with the mutant or without it.

- A mutant that the covering tests let survive is tested by all, in the order of PIT's own run, in one class loader. So
  is one whose killing test fails alone without it. It is killed if they fail twice, and pass without it in that JVM.
- That takes the time of all tests. They need not run where the covering tests have left with the mutant what all tests
  leave without it: the same in all static fields (`programs/StaticState.java`), and nothing else in the JVM. So they
  have met nothing of other tests that they do not meet alone, and later tests meet nothing of the mutant.
- What all leave without a mutant, and which of them fail in such a loader, is asked once, by the first that needs it.
- A JVM that a test starts loads the mutant from its class file (`programs/MutatedFile.java`), and no coverage has what
  it runs, nor what JUnit 5 runs after all tests of a class. So these test classes decide where all need not, also on a
  mutant that no test covers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import define, field

from .listing import NO_COVERAGE, SURVIVED, TIMED_OUT
from .testers import Testers

LATE = ["TIMEOUT"]  # what has "changed" in a JVM whose tests did not end
UNREAD = frozenset({"threads", "sockets", "child processes"})  # what tests leave and others don't look at


@define(eq=False)
class Suite:
    """The tests of `classes`. Cancelling: ends the tester that is asked."""

    testers: Testers
    classes: Sequence[str]
    _controls: dict[tuple[str, ...], Mapping[str, Any]] = field(factory=dict, init=False)  # without a mutant
    _turn: asyncio.Lock = field(factory=asyncio.Lock, init=False)

    async def verdict(self, arguments: str, answer: Mapping[str, Any]) -> dict[str, Any]:
        """The verdict of all tests, if it is another than the `answer` of the covering ones; else empty."""
        control = await self._without(arguments, self.classes)
        if answer.get("status") == NO_COVERAGE or leaves_the_same(answer, control):
            further = control.get("uncovered", ())
            found = await self._tested(arguments, further) if further else {}
            return found if found.get("status", SURVIVED) != SURVIVED else {}
        found = await self._tested(arguments, self.classes)
        return found if found.get("status") != answer.get("status") else {}

    async def _tested(self, arguments: str, classes: Sequence[str]) -> dict[str, Any]:
        """The answer of the tests of `classes`; empty where there is none."""
        control = await self._without(arguments, classes)
        if "failing" not in control:
            return {}
        for _ in range(2):
            asked = {"failing": control["failing"], "ms": control["ms"]}
            found = await self.testers.test(arguments, suite=classes, **asked)
            if found.get("changed") != LATE:
                return found if "status" in found else {}
        return found | {"status": TIMED_OUT, "killing": [], "run": 0}

    async def _without(self, arguments: str, classes: Sequence[str]) -> Mapping[str, Any]:
        async with self._turn:
            key = tuple(classes)
            if key not in self._controls:
                self._controls[key] = await self.testers.test(arguments, suite=classes)
            return self._controls[key]


def leaves_the_same(answer: Mapping[str, Any], control: Mapping[str, Any]) -> bool:
    """Whether tests that let a mutant survive have left no other state than all tests do without it."""
    left, all_left = answer.get("left"), control.get("left")
    if answer.get("status") != SURVIVED or left is None or all_left is None:
        return False
    if answer["changed"] or not UNREAD.issuperset(control["changed"]):
        return False
    return all(name in all_left and all_left[name] == number for name, number in left.items())
