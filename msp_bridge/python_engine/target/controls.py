"""What runs without a mutant have shown of the tests that kill mutants.

Theory of operation
-------------------
A test that fails with a mutant says something about the mutant only if it passes without it. A *control* is a run of
the test alone, without the mutant. It is no proof for ever: a test may fail by chance, or by load. So a test's first
kill is controlled, then its 4th, its 16th and so on.

States of a test: unknown; *steady*, when a control passed; *fails alone*, when a control failed before the test was
measured alone (it may need other tests before it): a fresh process then runs it in its place; *unsteady*, when it has
passed when it was measured alone, and fails now. An unsteady test stays one: each of its kills needs a control. That a
control has passed is no such measurement: where two mutants may meet at a port, the next one fails, and to leave the
test out of the verdict for that would be wrong.
"""

from __future__ import annotations


class Controls:
    """The states of the tests of one baseline, by their indexes."""

    def __init__(self) -> None:
        self._kills: dict[int, int] = {}
        self._steady: set[int] = set()
        self._fails_alone: set[int] = set()
        self._unsteady: set[int] = set()

    def due(self, test: int) -> bool:
        """Count one more kill by `test`; whether it needs a control."""
        kills = self._kills[test] = self._kills.get(test, 0) + 1
        return test in self._unsteady or test not in self._steady or _is_power_of_four(kills)

    def passed(self, test: int) -> None:
        """The control of `test` has passed."""
        self._steady.add(test)

    def failed(self, test: int, *, passed_alone: bool) -> None:
        """The control of `test` has failed; `passed_alone`: it has passed when it was measured alone."""
        (self._unsteady if passed_alone else self._fails_alone).add(test)

    def is_unsteady(self, test: int) -> bool:
        """Whether `test` has passed alone and failed alone."""
        return test in self._unsteady

    def fails_alone(self, test: int) -> bool:
        """Whether `test` has failed alone, and was not measured alone before."""
        return test in self._fails_alone


def _is_power_of_four(number: int) -> bool:
    return number & (number - 1) == 0 and number.bit_length() % 2 == 1
