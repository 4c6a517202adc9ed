"""Answers: what a worker says, checked before anything is made of it.

A worker may be broken, or run another program. So each value of an answer is checked, as those of a client's message
are: its type, the range of a number, the size of all texts. Every function raises ValueError, or another of `FAULTS`,
for what no worker by the rules says; `checked` then refuses the worker.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeVar

from attrs import astuple, define, field

from msp_bridge.cluster.wire import ERRORS, ChunkProgress, Greeting, WireError
from msp_bridge.errors import BridgeError, ToolError
from msp_bridge.model import Mutant, Result
from msp_bridge.notices import FailingTest, PhaseReport, Remark, UnusableFile
from msp_bridge.rows import names_of, result_fields

T = TypeVar("T")

FAULTS = (ValueError, TypeError, AttributeError, LookupError, ArithmeticError, RecursionError)
MOST_TEXT = 64 << 20  # characters and values in one answer: as much as a client's message may have


class Refused(BridgeError):
    """This worker is not used; `reason` says why."""

    def __init__(self, reason: BridgeError) -> None:
        super().__init__(reason.problem, reason.remedy)
        self.reason = reason


def checked(read: Callable[[Any], T], answer: Any) -> T:
    """Check a worker's answer with `read`, one of the functions below. Raises Refused."""
    try:
        return read(answer)
    except FAULTS as error:
        raise breaks_the_rules(str(error)) from error


def breaks_the_rules(fault: str) -> Refused:
    """Refuse a worker that does what none by the rules does: `fault`."""
    return Refused(ToolError(f"the worker breaks the rules: {fault}", "end it, and see its log"))


def greeting_of(answer: Any) -> Greeting:
    """Check a worker's description of itself."""
    found = _of(Greeting, answer)
    texts = (found.version, found.name, found.python)
    _require(all(map(_is_text, texts)) and _size(texts) < 1000, "a worker's greeting")
    _require(type(found.threads) is int and 0 < found.threads < 1_000_000, "a number of threads")
    return found


def lacking_of(answer: Any) -> Collection[str] | None:
    """The digests of the files that it lacks; None where it needs the entries of the snapshot first."""
    return None if answer is None else names_of(answer)


def failure_of(answer: Any) -> WireError | None:
    """Why it can't be used, if so."""
    if answer is None:
        return None
    found = _of(WireError, answer)
    texts = [found.problem, found.first_failure, *names_of(found.failing), *filter(None, [found.remedy])]
    _require(found.kind in ERRORS and all(map(_is_text, texts)) and _size(texts) <= MOST_TEXT, "the form of a failure")
    return found


@define
class ChunkAnswers:
    """The answers about one chunk, one after another. No mutant has two results, or one and none."""

    mutants: Sequence[Mutant]
    _left: set[int] = field(init=False)  # numbers of mutants without a result

    def __attrs_post_init__(self) -> None:
        self._left = set(range(len(self.mutants)))

    def read(self, answer: Any) -> tuple[ChunkProgress, list[Result]]:
        """The answer, and the results that are new in it."""
        found = _of(ChunkProgress, answer)
        flags = (found.begun, found.ended, found.expired)
        _require(all(type(flag) is bool for flag in flags), "the state of a chunk")
        notices = [_texts_of(notice) for notice in found.notices]
        _require(_size([list(found.rows), notices]) <= MOST_TEXT, "an answer of this size")
        _require(found.phase is None or _is_phase(found.phase), "a phase")
        failure_of(found.failure)
        results = [self._result(row) for row in found.rows]
        unmatched = list(found.unmatched)
        _require(all(type(number) is int for number in unmatched), "the number of a mutant")
        _require(len(unmatched) == len(set(unmatched)) and self._left.issuperset(unmatched), "a mutant that is not due")
        return found, results

    def _result(self, row: Any) -> Result:
        number, *fields = row
        _require(type(number) is int and number in self._left, "a result of a mutant that is due")
        self._left.remove(number)
        return Result(self.mutants[number], **result_fields(fields))


def _of(kind: Callable[..., T], answer: Any) -> T:
    _require(type(answer) is kind, f"a {getattr(kind, '__name__', kind)}")
    found: T = answer
    return found


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(f"this is not {what}")


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _texts_of(notice: Any) -> list[str]:
    """Check the texts of an adapter's notice."""
    _require(type(notice) in (FailingTest, Remark, UnusableFile), "a notice")
    texts = astuple(notice)
    _require(all(map(_is_text, texts)), "a notice's text")
    return list(texts)


def _is_phase(value: Any) -> bool:
    if type(value) is not PhaseReport:
        return False
    numbers = [number for number in (value.done, value.total) if number is not None]
    texts = [value.name] if value.test is None else [value.name, value.test]
    return all(map(_is_text, texts)) and all(type(number) is int for number in numbers)


def _size(value: Any) -> int:
    """How many characters and values there are in it."""
    if isinstance(value, str):
        return 1 + len(value)
    if isinstance(value, dict):
        return 1 + sum(_size(one) for pair in value.items() for one in pair)
    return 1 + sum(map(_size, value)) if isinstance(value, list | tuple) else 1
