"""What an agent is shown first, which results count, and progress that only ever increases."""

import asyncio
import json
from collections.abc import AsyncGenerator, Iterable
from pathlib import Path

import pytest

from msp_bridge.adapter import Notice
from msp_bridge.concurrency import cancel_all
from msp_bridge.errors import BaselineError, SeveralErrors, ToolError
from msp_bridge.mcp import running_calls, testing
from msp_bridge.mcp.answers import (
    MAX_CODE,
    MAX_LIST,
    MAX_TEXT,
    MutantAnswer,
    MutantList,
    Survivors,
    error_text,
    fitting,
)
from msp_bridge.mcp.known_mutants import KnownMutants
from msp_bridge.mcp.running_calls import CallProgress
from msp_bridge.mcp.tools import TOOLS
from msp_bridge.model import Location, Mutant, Position, Result, Status
from msp_bridge.reports.results import most_telling
from msp_bridge.source import SourceText
from msp_bridge.workspace.versions import FileVersions


def result(line: int, status: Status = Status.SURVIVED, tests: int = 1, column: int = 1) -> Result:
    location = Location(Position(line, column), Position(line, column + 1))
    return Result(Mutant("a.py", "m", location, "2"), status, covered_by=tuple(f"test_{n}" for n in range(tests)))


def test_survivors_of_different_lines_come_first_and_those_that_most_tests_ran() -> None:
    found = [
        result(1, Status.NO_COVERAGE, 0),
        result(2),
        result(3, tests=5),
        result(3, tests=4, column=9),
        result(4, Status.KILLED, 9),
        result(5, Status.TIMEOUT),
        result(6, tests=2),
    ]
    shown = [(one.mutant.location.start.line, one.mutant.location.start.column) for one in most_telling(found)]
    assert shown == [(3, 1), (6, 1), (2, 1), (1, 1), (3, 9)]


async def test_what_was_not_tested_goes_first_then_what_survived(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("1\n1\n1\n")
    killed, survived, new = result(1, Status.KILLED), result(2), result(3)
    versions = FileVersions(tmp_path)
    known = KnownMutants(versions)
    mutants = [one.mutant for one in (killed, survived, new)]
    version = await versions.look()
    known.listed(mutants, {"a.py": None}, version)
    known.tested([killed, survived], version)
    assert known.most_wanted(mutants) == [new.mutant, survived.mutant, killed.mutant]
    assert known.current() == ([killed, survived], [], [])
    (tmp_path / "test_a.py").write_text("1\n")
    await versions.look()
    assert known.current() == ([], [killed, survived], ["test_a.py"])
    assert known.untested(mutants) == 3
    known.tested([survived], await versions.look())
    assert known.most_wanted(mutants) == [new.mutant, killed.mutant, survived.mutant]
    (tmp_path / "test_a.py").unlink()
    await versions.look()
    assert known.current() == ([killed], [survived], ["test_a.py"])
    (tmp_path / "a.py").unlink()
    await versions.look()
    assert known.current()[0] == []


async def test_what_came_before_a_call_was_cancelled_is_kept_also_when_files_are_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.py").write_text("1\n1\n")
    versions, look, looking = FileVersions(tmp_path), FileVersions.look, asyncio.Event()
    known, first, second = KnownMutants(versions), result(1), result(2)
    version = await versions.look()
    known.listed([first.mutant, second.mutant], {"a.py": None}, version)

    async def first_without_end(self: FileVersions, paths: Iterable[str] = ()) -> int:
        if not looking.is_set():
            looking.set()
            await asyncio.Event().wait()
        return await look(self, paths)

    async def tested() -> AsyncGenerator[Result | Notice, None]:
        yield first
        yield second

    async def report(_progress: float, _total: float | None, _message: str) -> None:
        pass

    monkeypatch.setattr(FileVersions, "look", first_without_end)
    monkeypatch.setattr(testing, "LOOK_S", -1.0)  # a look after each result
    running = testing.TestRun(known, CallProgress(report)).test([first.mutant, second.mutant], version, tested())
    task = asyncio.create_task(running)
    await looking.wait()
    await cancel_all([task])
    assert known.current()[0] == [first]


async def test_progress_increases_also_while_nothing_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running_calls, "BEAT_S", 0)
    numbers: list[float] = []

    async def report(number: float, total: float | None, message: str) -> None:
        numbers.append(number)

    progress = CallProgress(report)
    async with progress.reported():
        for _ in range(20):
            await asyncio.sleep(0)
        progress.total = 3
        for _ in range(3):
            for _ in range(20):
                await asyncio.sleep(0)
            progress.step("one more")
    assert numbers == sorted(set(numbers))
    assert len(numbers) > 10
    assert numbers[-1] == 3


async def test_what_was_done_last_is_reported_to_a_client_that_reads_slowly(monkeypatch: pytest.MonkeyPatch) -> None:
    """A report that was on its way when the call ended was dropped, and not sent again."""
    monkeypatch.setattr(running_calls, "BEAT_S", 0)
    reads, writing = asyncio.Event(), asyncio.Event()
    sent: list[tuple[float, str]] = []

    async def report(number: float, total: float | None, message: str) -> None:
        if message == "all":
            writing.set()
            await reads.wait()
        sent.append((number, message))

    progress = CallProgress(report)
    async with progress.reported():
        progress.total = 1
        progress.step("all")
        await writing.wait()
        asyncio.get_running_loop().call_soon(reads.set)
    assert sent[-1] == (1, "all")


async def test_a_cancel_does_not_wait_for_a_client_that_reads_nothing() -> None:
    writing = asyncio.Event()

    async def report(number: float, total: float | None, message: str) -> None:
        writing.set()
        await asyncio.Event().wait()

    async def call() -> None:
        async with CallProgress(report).reported():
            await writing.wait()

    calling = asyncio.create_task(call())
    await writing.wait()
    await asyncio.sleep(0)
    await cancel_all([calling])


def test_code_is_shown_as_whole_lines_and_cut() -> None:
    source = SourceText("def f():\n    x = 1 + 2\n")
    mutant = Mutant("a.py", "m", source.location(source.text.index("+"), source.text.index("+") + 1), "-")
    answer = MutantAnswer.of(mutant, None, source)
    assert (answer.before, answer.after, answer.status, answer.tests) == ("x = 1 + 2", "x = 1 - 2", "Pending", None)
    long = Mutant("a.py", "m", mutant.location, "-" * 999)
    assert len(MutantAnswer.of(long, None, source).after) == MAX_CODE
    assert MutantAnswer.of(mutant, None, SourceText("")).after == "-"
    assert "`x = 1 + 2` => `x = 1 - 2`" in answer.text()


def test_a_list_is_cut_where_the_answer_would_be_too_long() -> None:
    location = Location(Position(1, 1), Position(1, 2))
    mutants = [MutantAnswer.of(Mutant("é" * 90, f"m{n}", location, "x" * 999), None, None) for n in range(500)]
    shown = fitting(mutants)
    size = len(json.dumps([mutant.model_dump() for mutant in shown], ensure_ascii=False).encode())
    assert MAX_LIST * 0.9 < size < MAX_LIST * 1.1
    text = MutantList(total=500, mutants=shown, next_cursor="1", problems=[]).text()
    assert MAX_TEXT * 0.9 < len(text.encode()) < MAX_TEXT * 1.1
    assert f"limit={text.count(chr(10)) - 2} names no more than this" in text
    assert len(fitting(mutants[:1])) == 1


def test_an_error_says_the_problem_and_what_to_do() -> None:
    red = BaselineError("the tests fail", "fix them", ["test_a", "test_b"], "E  assert 1\n")
    assert error_text(red) == "the tests fail.\nWhat to do: fix them.\n  test_a\n  test_b\nE  assert 1"
    assert error_text(SeveralErrors([ToolError("a"), ToolError("b", "c")])) == "a.\n\nb.\nWhat to do: c."


def test_no_results_are_said_to_be_none() -> None:
    assert Survivors(tested=0, counts={}, score=None, survivors=[], more_survivors=0).text() == "no results yet"


@pytest.mark.parametrize("name", TOOLS)
def test_a_schema_is_short_and_says_what_each_argument_is(name: str) -> None:
    schema = TOOLS[name].tool(name).input_schema
    assert schema["additionalProperties"] is False
    for argument in schema["properties"].values():
        assert argument["description"]
        assert argument["type"] in ("string", "integer", "array")
        assert argument.get("default", "") is not None
    assert "title" not in str(schema)
