"""A worker that breaks the rules ends alone: the others go on, and no verdict is another one."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from attrs import define, evolve, field

from msp_bridge import __version__
from msp_bridge.cluster import dispatch
from msp_bridge.cluster import worker as remote
from msp_bridge.cluster.connection import Bounds, SchedulerConnection, WorkerLost
from msp_bridge.cluster.dispatch import EXPIRED, Dispatch
from msp_bridge.cluster.snapshot import Snapshot
from msp_bridge.cluster.wire import Chunk, ChunkProgress, Greeting, Order, WireError
from msp_bridge.errors import ToolError
from msp_bridge.model import Location, Mutant, Position, Status
from msp_bridge.notices import FailingTest, PhaseReport, ProjectFailure
from msp_bridge.rows import mutant_row

MUTANTS = [Mutant("a.py", "plus", Location(Position(n, 1), Position(n, 2)), "-") for n in range(1, 41)]
ORDER = Order("client", "snapshot", "tree", ".", "scripted", {}, None, nested=False, surroundings=None)
BOUNDS = Bounds()
GREETING = Greeting(__version__, "liar", 1, "3.12.0")
Answer = Callable[[ChunkProgress], Any]


def row(number: object, status: object = "Survived", reason: object = None, **more: Any) -> list[Any]:
    values = {"duration": 1.0, "covered_by": ["t"], "killed_by": [], "static": None} | more
    return [number, status, *values.values(), reason, None, True]


def rows(*found: Any) -> Answer:
    return lambda honest: evolve(honest, rows=list(found))


LIES: dict[str, Answer] = {
    "no answer at all": lambda _: None,
    "a text": lambda _: "Pwned",
    "an unknown status": rows(row(0, "Pwned")),
    "no result yet": rows(row(0, None)),
    "a row too large": rows(row(10**6)),
    "a negative row": rows(row(-1)),
    "a row that is no number": rows(row("0")),
    "a row that is true": rows(row(True)),
    "a mutant twice": rows(row(0), row(0)),
    "a row too short": rows([0, "Survived"]),
    "rows that are none": lambda honest: evolve(honest, rows=5),
    "an endless time": rows(row(0, duration=float("inf"))),
    "no number for a time": rows(row(0, duration=float("nan"))),
    "a text for tests": rows(row(0, killed_by="test_a")),
    "numbers for tests": rows(row(0, covered_by=[1])),
    "a number for a reason": rows(row(0, reason=5)),
    "a reason of 100 MB": rows(row(0, reason="x" * 100_000_000)),
    "unmatched too large": lambda honest: evolve(honest, unmatched=[10**7]),
    "unmatched negative": lambda honest: evolve(honest, unmatched=[-1]),
    "unmatched twice": lambda honest: evolve(honest, rows=[], unmatched=[0, 0]),
    "unmatched, and a result": lambda honest: evolve(honest, rows=[row(0)], unmatched=[0]),
    "a notice that is none": lambda honest: evolve(honest, notices=["pwned"]),
    "a failing test that has no name": lambda honest: evolve(honest, notices=[FailingTest(cast(str, 5))]),
    "a failure of the whole project": lambda honest: evolve(honest, notices=[ProjectFailure(ToolError("pwned"))]),
    "a phase that is none": lambda honest: evolve(honest, phase="pwned"),
    "a phase of no number": lambda honest: evolve(honest, phase=PhaseReport("testing", cast(int, "x"))),
    "a phase whose test has no name": lambda honest: evolve(honest, phase=PhaseReport("testing", test=cast(str, 1))),
    "an unknown failure": lambda honest: evolve(honest, failure=WireError("pwned", "x")),
    "a failure that is a text": lambda honest: evolve(honest, failure="x"),
    "neither begun nor not": lambda honest: evolve(honest, begun="yes"),
    "nothing, again and again": lambda honest: evolve(honest, rows=[], ended=False),
    "nothing begun, again and again": lambda honest: evolve(honest, rows=[], begun=False, ended=False),
    "ended by its lease, again and again": lambda honest: evolve(honest, rows=[], expired=True),
}


@define
class TwoWorkers:
    """In the place of a scheduler: one worker that kills every mutant, once the other has said what it says."""

    progress: Answer
    greeting: Any = GREETING
    lacking: Any = ()
    prepared: Any = None
    address: str = "tcp://fake"
    keeps_waiting: float = 0  # s for which the liar keeps a question for results
    lies: int = 0
    lied: asyncio.Event = field(factory=asyncio.Event)
    chunks: dict[str, Chunk] = field(factory=dict)

    async def workers(self) -> dict[str, int]:
        return {"liar": 1, "good": 1}

    async def call(self, worker: str, function: Callable[..., Any], *arguments: Any, within: float) -> Any:
        await asyncio.sleep(0)
        match function, worker:
            case remote.greet, "liar":
                return self._lie(self.greeting, GREETING)
            case remote.greet, _:
                await self.lied.wait()
                return GREETING
            case remote.lacking, "liar":
                return self._lie(self.lacking, ())
            case remote.lacking, _:
                return []
            case remote.prepare, "liar":
                return self._lie(self.prepared, None)
            case remote.progress, _:
                chunk, after, _ = arguments
                await asyncio.sleep(self.keeps_waiting if worker == "liar" else 0)
                found = [row(number, "Killed") for number in range(len(self.chunks[chunk].mutants))]
                return self._said(worker, ChunkProgress(found[after:], ended=True))
        return None

    def _lie(self, answer: Any, honest: Any) -> Any:
        if answer is not honest:
            self.lied.set()
        return answer

    def _said(self, worker: str, honest: ChunkProgress) -> Any:
        if worker == "good":
            return honest
        answer, self.lies = self.progress(honest), self.lies + 1
        if self.lies == EXPIRED or not getattr(answer, "expired", False):
            self.lied.set()
        return answer

    async def take_leave(self, worker: str, *arguments: Any, within: float) -> None:
        if worker == "liar":
            self.lied.set()

    def submit(self, worker: str, function: Any, chunk: Chunk, key: str) -> Any:
        self.chunks[chunk.id] = chunk
        return SimpleNamespace(status="pending", release=lambda: None)


async def said_while_tested(
    workers: TwoWorkers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bounds: Bounds = BOUNDS
) -> list[str]:
    """What is said to the user when all mutants are tested, each by the good worker."""
    monkeypatch.setattr(dispatch, "LOOK_S", 0.01)
    said: list[str] = []
    connection, snapshot = cast(SchedulerConnection, workers), Snapshot("snapshot", tmp_path, {})
    request = Dispatch(connection, ORDER, snapshot, MUTANTS, said.append, bounds=bounds)
    async with asyncio.timeout(120):
        found = [(result.mutant, result.status) async for result in request.results()]
    assert sorted(found, key=repr) == sorted(((mutant, Status.KILLED) for mutant in MUTANTS), key=repr)
    assert request.unmatched == []
    return said


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES.keys())
async def test_a_worker_that_breaks_the_rules_is_not_used_and_the_others_go_on(
    lie: Answer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [said] = await said_while_tested(TwoWorkers(lie), tmp_path, monkeypatch)
    assert said.startswith("the worker liar is not used: the worker breaks the rules: ")
    assert len(said) < 300


async def test_a_worker_that_waits_and_never_begins_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workers = TwoWorkers(lambda honest: evolve(honest, rows=[], begun=False, ended=False), keeps_waiting=0.05)
    said = await said_while_tested(workers, tmp_path, monkeypatch, Bounds(ask=0.05, begin=0.3))
    assert any("liar" in text and "there was no result for 0.3 s" in text for text in said)


GREETINGS = {
    "no greeting": {"greeting": None},
    "a number for a version": {"greeting": evolve(GREETING, version=cast(str, 5))},
    "no threads": {"greeting": evolve(GREETING, threads=-1)},
    "numbers for files": {"lacking": [1]},
    "a number for what it lacks": {"lacking": 5},
    "a text for a failure": {"prepared": "no"},
    "an unknown failure": {"prepared": WireError("pwned", "x")},
}


@pytest.mark.parametrize("answers", GREETINGS.values(), ids=GREETINGS.keys())
async def test_a_worker_that_prepares_against_the_rules_is_not_used(
    answers: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workers = TwoWorkers(lambda honest: honest, **answers)
    [said] = await said_while_tested(workers, tmp_path, monkeypatch)
    assert "the worker liar is not used: the worker breaks the rules: " in said


@define(eq=False)
class MortalWorkers(TwoWorkers):
    """In the place of a scheduler: one worker at a time, which the mutant `killer` ends; then there is the next."""

    killer: Mutant = field(kw_only=True)
    ended: int = 0

    async def workers(self) -> dict[str, int]:
        return {f"w{self.ended}": 1}

    async def call(self, worker: str, function: Callable[..., Any], *arguments: Any, within: float) -> Any:
        if function is remote.progress:
            if mutant_row(self.killer) in self.chunks[arguments[0]].mutants:
                await asyncio.sleep(0.01)
                self.ended += 1
                raise WorkerLost("it has ended")
            await asyncio.sleep(0.02)  # what is beside the killer has no result when the worker ends
        return await super().call(worker, function, *arguments, within=within)


async def test_a_mutant_that_waits_for_the_end_of_the_one_that_ends_workers_is_not_blamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch, "LOOK_S", 0.01)
    killer, other = MUTANTS[:2]
    workers = MortalWorkers(lambda honest: honest, killer=killer)
    workers.lied.set()
    connection, snapshot = cast(SchedulerConnection, workers), Snapshot("snapshot", tmp_path, {})
    request = Dispatch(connection, ORDER, snapshot, [killer, other], lambda _: None)
    async with asyncio.timeout(120):
        found = {result.mutant: result.status async for result in request.results()}
    assert found == {killer: Status.IGNORED, other: Status.KILLED}
