"""Reports and event streams in shapes that the scripted dotnet doesn't give, as the real tool's source has them."""

from __future__ import annotations

import asyncio
import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from msp_bridge.adapters.stryker_net.configuration import Configuration
from msp_bridge.adapters.stryker_net.events import events_of
from msp_bridge.adapters.stryker_net.report import Report

from msp_bridge.adapter import ConfigurationError, Location, Position, Status, ToolError

ROOT = Path("/home/dev/copy")
SOURCE = "\N{ZERO WIDTH NO-BREAK SPACE}namespace Calc;\r\npublic class Zero { public bool Is(int x) => x == 0; }\r\n"
KNOWN, UNKNOWN = "6b0b5f0e-0000-0000-0000-000000000001", "6b0b5f0e-0000-0000-0000-000000000002"


def place(line: int, start: int, end: int) -> dict[str, Any]:
    return {"start": {"line": line, "column": start}, "end": {"line": line, "column": end}}


def report(*mutants: dict[str, Any], **files: Any) -> Report:
    content = {
        "schemaVersion": "2",
        "projectRoot": str(ROOT),
        "files": {f"{ROOT}/src/Zero.cs": {"language": "cs", "source": SOURCE, "mutants": list(mutants)}, **files},
        "testFiles": {"/t.cs": {"language": "cs", "tests": [{"id": KNOWN, "name": "Tests.Zero"}]}},
    }
    return Report.of(content, ROOT)


def mutant(**fields: Any) -> dict[str, Any]:
    return {
        "id": "7",
        "mutatorName": "Equality mutation",
        "replacement": "x != 0",
        "location": place(2, 46, 52),
        "status": "Killed",
        "coveredBy": [KNOWN, UNKNOWN],
        "killedBy": [KNOWN],
        **fields,
    }


async def test_a_mutant_is_read_from_the_report() -> None:
    one = report(mutant())
    [(found, entry)] = await one.mutants("test/")
    assert (found.path, found.mutator, found.replacement) == ("src/Zero.cs", "Equality mutation", "x != 0")
    assert found.location == Location(Position(2, 46), Position(2, 52))
    start = SOURCE.index("x == 0") - 1
    assert found.handle == f"test/:{start}..{start + 6}"
    result = one.result(found, entry)
    assert result.killed_by == ("Tests.Zero",)
    assert result.covered_by == ("Tests.Zero", UNKNOWN)


async def test_an_event_may_have_nulls_and_no_lists() -> None:
    one = report(mutant(status="Pending"))
    [(found, _)] = await one.mutants("")
    event = {"id": "7", "status": "Timeout", "statusReason": None, "static": None, "coveredBy": None, "killedBy": None}
    result = one.result(found, event)
    assert (result.status, result.static, result.covered_by, result.killed_by) == (Status.TIMEOUT, None, None, None)


@pytest.mark.parametrize(
    "fields",
    [{"location": place(99, 1, 2)}, {"location": place(2, 500, 501)}, {"location": None}, {"location": {"start": {}}}],
)
async def test_a_place_that_the_file_does_not_have_leaves_a_mutant_out(
    fields: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    assert await report(mutant(**fields)).mutants("") == []
    assert "a mutant of src/Zero.cs is left out" in caplog.text


async def test_files_outside_of_the_copy_are_left_out() -> None:
    elsewhere = {"/home/dev/Shared.cs": {"language": "cs", "source": SOURCE, "mutants": [mutant()]}}
    assert [found.path for found, _ in await report(mutant(), **elsewhere).mutants("")] == ["src/Zero.cs"]


async def test_a_status_that_we_do_not_know_is_no_verdict() -> None:
    one = report(mutant(status="Exploded"))
    [(found, entry)] = await one.mutants("")
    assert one.result(found, entry).status is Status.IGNORED
    assert "Exploded" in str(one.result(found, entry).status_reason)


@pytest.mark.parametrize("content", [[], {}, {"files": None}, {"files": {"a": 1}}, {"files": {"a": {"mutants": None}}}])
def test_what_is_no_report_is_refused(content: Any) -> None:
    with pytest.raises(ToolError, match="unknown shape"):
        Report.of(content, ROOT)


async def events(*pieces: bytes, status: bytes = b"200 OK", head: bytes = b"") -> list[tuple[str, str]]:
    """What is read of an answer that comes in `pieces`."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 " + status + b"\r\nContent-Type: text/event-stream\r\n" + head + b"\r\n")
        for piece in pieces:
            await writer.drain()
            await asyncio.sleep(0.01)
            writer.write(piece)
        await writer.drain()
        writer.close()

    asked: list[bytes] = []
    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with contextlib.aclosing(events_of("localhost", port)) as found:
            got = [event async for event in found]
    assert f"host: localhost:{port}\r\n".encode() in asked[0].lower()
    return got


EVENT = b'\nevent:mutant-tested\ndata:{"id":"1"}\n\n\n'


async def test_events_are_read_in_whatever_pieces_they_come() -> None:
    whole = EVENT + b"\nevent: finished\r\ndata: \r\n\r\n"
    expected = [("mutant-tested", '{"id":"1"}'), ("finished", "")]
    assert await events(whole) == expected
    assert await events(*(whole[at : at + 1] for at in range(len(whole)))) == expected


async def test_events_in_chunks_are_read() -> None:
    chunks = [b"%x\r\n%s\r\n" % (len(part), part) for part in (EVENT[:9], EVENT[9:], EVENT)]
    chunked = b"Transfer-Encoding: chunked\r\n"
    assert await events(*chunks, b"0\r\n\r\n", head=chunked) == [("mutant-tested", '{"id":"1"}')] * 2
    assert await events(chunks[0], chunks[1][:20], head=chunked) == []  # it was cut off


async def test_data_of_several_lines_is_joined_and_comments_are_skipped() -> None:
    assert await events(b": hello\nretry: 5\nevent: e\ndata: a\ndata:b\n\n") == [("e", "a\nb")]


async def test_what_is_no_stream_is_refused() -> None:
    with pytest.raises(ValueError, match="400"):
        await events(status=b"400 Bad Request")
    assert await events() == []


def test_comments_in_a_configuration_are_skipped_and_strings_are_not(tmp_path: Path) -> None:
    file = tmp_path / "stryker-config.json"
    file.write_text('{ // one\n "stryker-config": { /* two\n */ "mutate": ["**/*.cs", "!//x/*.cs{1..2}"] } }')
    configuration = Configuration.read(file)
    assert (configuration.included, configuration.excluded) == (("**/*.cs",), ("!//x/*.cs{1..2}",))
    assert configuration.for_copy() is None


def test_a_configuration_for_the_copy_lacks_what_needs_version_control(tmp_path: Path) -> None:
    file = tmp_path / "stryker-config.json"
    file.write_text('{"stryker-config": {"since": {}, "baseline": {"enabled": true}, "verbosity": "info"}}')
    assert json.loads(Configuration.read(file).for_copy() or "") == {"stryker-config": {"verbosity": "info"}}


def test_a_configuration_that_is_not_there_is_one_clear_sentence(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"can't be read: .*; correct it"):
        Configuration.read(tmp_path / "stryker-config.json")
