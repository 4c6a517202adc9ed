"""The program that lists mutants: when a slow question sets it aside."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field

from msp_bridge.python_engine import ListingProgram, listing_program


@define(eq=False)
class Scripted:
    """A program that has taken so much CPU time at each look, and answers after the last one."""

    taken: list[float]
    closed: bool = False
    _answer: asyncio.Future[Any] = field(init=False)

    def post(self, _question: Mapping[str, object]) -> tuple[int, asyncio.Future[Any]]:
        self._answer = asyncio.get_running_loop().create_future()
        return 1, self._answer

    def works_on(self, _number: int) -> bool:
        return True

    def cpu_seconds(self) -> float:
        seconds = self.taken.pop(0)
        if not self.taken:
            self._answer.get_loop().call_soon_threadsafe(self._answer.set_result, {"mutants": []})
        return seconds

    async def close(self) -> None:
        self.closed = True


async def test_a_program_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    program = Scripted([7.0, 7.0])  # it is looked at once, and does not answer

    async def start() -> Any:
        return program

    for name in ("LOOK_S", "FILE_TIMEOUT_S", "KILOBYTE_TIMEOUT_S"):
        monkeypatch.setattr(listing_program, name, 0.0)
    with pytest.raises(TimeoutError):
        await ListingProgram(lambda: Path(), start).ask({"path": "m.py"}, "code")
    assert program.closed


@pytest.mark.parametrize(
    ("taken", "is_ended"),
    [
        ([7.0, 7.0, 7.0, 7.0], False),  # it gets no CPU
        ([7.0, 8.0, 8.9], False),
        ([7.0, 9.0], True),
    ],
)
async def test_a_question_that_takes_long_by_the_clock_alone_does_not_cost_the_program(
    taken: list[float], is_ended: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = Scripted(taken)

    async def start() -> Any:
        return program

    monkeypatch.setattr(listing_program, "LOOK_S", 0.0)
    listing = ListingProgram(lambda: Path(), start)
    assert await listing.ask({"path": "m.py"}, "code") == {"mutants": []}
    assert program.closed is is_ended
    await listing.aclose()
