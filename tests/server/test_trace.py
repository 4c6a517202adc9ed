"""What a bug report needs: every message with its time, and the log; neither ever has a token."""

import base64
import json
import stat
import subprocess
import sys
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from support.msp_client import Client, framed
from support.servers import ScriptedProject, on_stdio, over_stdio, refused_by, until
from support.socket_servers import TOKEN, socket_server, the_token

import msp_bridge
from msp_bridge.access.credentials import redact_token
from msp_bridge.jsonrpc.trace import Trace

VERSION = {"version": "0.4.0"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "trace.jsonl"


@pytest.fixture
async def client(project: ScriptedProject, file: Path) -> AsyncIterator[Client]:
    """The first client of a server that traces to `file`."""
    async with socket_server(project, trace=Trace(file, redact_token)) as server:
        yield await server.connect()


def lines(file: Path) -> list[dict[str, Any]]:
    """What is recorded by now."""
    return [json.loads(line) for line in file.read_text().splitlines()]


def said(file: Path, *keys: str) -> list[Any]:
    """The messages without their times, or other keys of the lines that have them."""
    wanted = keys or ("direction", "message")
    return [tuple(line[key] for key in wanted) for line in lines(file) if all(key in line for key in wanted)]


async def test_every_message_is_recorded_as_it_was_and_in_order(
    project: ScriptedProject, client: Client, file: Path
) -> None:
    project.write("a.py", "1 ünï")
    request = {"jsonrpc": "2.0", "id": 1, "method": "mutationTest", "params": {"files": [{"path": "a.py"}]}}
    await client.send(framed(json.dumps(request, indent=2).replace("\n", "\r\n").encode()))
    assert (await client.answer(1))["result"] == {"files": {}}
    (progress,) = client.progress
    assert said(file) == [
        ("in", request),
        ("out", {"jsonrpc": "2.0", "method": "reportMutationTestProgress", "params": progress}),
        ("out", {"jsonrpc": "2.0", "id": 1, "result": {"files": {}}}),
    ]


async def test_each_line_has_its_time_and_client(project: ScriptedProject, file: Path) -> None:
    before = datetime.now().astimezone()
    async with socket_server(project, trace=Trace(file, redact_token)) as server:
        for _ in range(2):
            client = await server.connect()
            assert await client.request("configure") == VERSION
            await client.wire.aclose()
            assert await client.ended() == b""
    times = [datetime.fromisoformat(line["time"]) for line in lines(file)]
    assert times == sorted(times)
    assert before - timedelta(seconds=1) < times[0]
    assert times[-1] < datetime.now().astimezone() + timedelta(seconds=1)
    assert all(time.utcoffset() == timedelta(0) for time in times)
    assert [(line["client"], line.get("event"), line.get("direction")) for line in lines(file)] == [
        (number, *what)
        for number in (1, 2)
        for what in (("connected", None), (None, "in"), (None, "out"), ("disconnected", None))
    ]


async def test_what_is_no_json_is_recorded_as_its_text(client: Client, file: Path) -> None:
    for body in ("{ ü".encode(), b"[" * 1000, b'{"a": "\xff"}', b""):
        await client.send(framed(body))
        assert (await client.receive())["error"]["code"] == -32700
    assert [malformed for (malformed,) in said(file, "malformed")] == [
        {"text": "{ ü"},
        {"text": "[" * 1000},
        {"base64": base64.b64encode(b'{"a": "\xff"}').decode()},
        {"text": ""},
    ]


async def test_malformed_bytes_are_recorded_before_the_connection_closes(client: Client, file: Path) -> None:
    await client.send(b"Content-Length: many\r\n\r\n{}")
    await client.ended()
    assert said(file, "direction", "malformed") == [("in", {"text": "{}"})]
    assert "Content-Length is not a number: 'many'" in str(said(file)[-1])


async def test_half_a_message_is_recorded_when_its_sender_leaves(client: Client, file: Path) -> None:
    await client.send(framed({"jsonrpc": "2.0", "id": 1, "method": "configure"})[:-6])
    await client.wire.aclose()
    await until(lambda: bool(said(file, "malformed")))
    assert said(file, "malformed") == [({"text": '{"jsonrpc": "2.0", "id": 1, "method": "confi'},)]


async def test_a_token_is_recorded_nowhere(project: ScriptedProject, file: Path, tmp_path: Path) -> None:
    show = {"id": 1, "method": "authenticate", "params": {"token": TOKEN}}
    async with socket_server(project, trace=Trace(file, redact_token), token=the_token(tmp_path)) as server:
        client = await server.authenticated()
        await client.send(show)
        assert (await client.answer(1))["error"]["code"] == -32601
        for message in ({**show, "method": TOKEN}, framed(b'{"token": "' + TOKEN.encode()), TOKEN.encode() + b"\n\n"):
            await (other := await server.connect()).send(message)
            await other.ended()
        await until(lambda: said(file, "event").count(("rejected",)) == 3)
    async with socket_server(project, trace=Trace(file, redact_token)) as server:  # one that has none, by mistake
        await (client := await server.connect()).send(show)
        assert (await client.answer(1))["error"]["code"] == -32601
        await client.send(framed(json.dumps({"jsonrpc": "2.0", **show}).encode()[:-1]))
        await client.receive()
        await client.send(framed([{"jsonrpc": "2.0", **show}]))
        await client.receive()
        await client.send(framed({"jsonrpc": "2.0", **show})[:-3])
        await client.wire.aclose()
        await until(lambda: len(said(file, "malformed")) >= 2)
    assert TOKEN not in file.read_text()
    withheld = {"jsonrpc": "2.0", "id": 1, "method": "authenticate", "params": "withheld"}
    assert [message for direction, message in said(file) if direction == "in"] == [withheld, withheld, "withheld"]
    assert [recorded for (recorded,) in said(file, "malformed")] == [
        {"withheld": f"{length} bytes that may hold a secret"} for length in (109, 107)
    ]
    assert [event for (event,) in said(file, "event")] == [
        "connected",
        "rejected",
        "rejected",
        "rejected",
        "disconnected",
        "connected",
        "disconnected",
    ]


async def test_whatever_comes_can_be_recorded(client: Client, file: Path) -> None:
    odd = [
        b"[" * 900 + b"]" * 900,
        b'[[{"method": "authenticate", "params": {"token": "' + TOKEN.encode() + b'"}}]]',
        b'{"jsonrpc": "2.0", "id": 1e999, "method": "\\ud800", "params": {"token": "' + TOKEN.encode() + b'"}}',
        b'{"jsonrpc": "2.0", "id": [1e999, "\\ud800"], "method": {}, "params": {"token": "' + TOKEN.encode() + b'"}}',
        b'{"jsonrpc": "2.0", "id": "\\ud800", "method": "configure", "params": {"x": 1e999}}',
        b'"a\\nb\\u0000"',
        b" 7 ",
    ]
    for body in odd:
        await client.send(framed(body))
        await client.receive()
    assert await client.request("configure") == VERSION
    assert len([line for line in lines(file) if line.get("direction") == "in"]) == len(odd) + 1
    assert TOKEN not in file.read_text()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no disk that is always full")
async def test_a_trace_that_cannot_be_written_fails_no_request(
    project: ScriptedProject, caplog: pytest.LogCaptureFixture
) -> None:
    async with socket_server(project, trace=Trace(Path("/dev/full"), redact_token)) as server:
        client = await server.connect()
        for _ in range(3):
            assert await client.request("configure") == VERSION
    assert [record.message for record in caplog.records if "trace" in record.message] == [
        "the trace ends here, /dev/full can't be written: [Errno 28] No space left on device"
    ]


async def test_a_server_on_stdio_records_what_it_is(project: ScriptedProject, file: Path) -> None:
    for _ in range(2):  # it is appended to: an editor starts a server again and again
        async with over_stdio(project, "--", "--adapter", "scripted", "--trace", str(file)) as client:
            assert await client.request("configure") == VERSION
    started, request, answer = lines(file)[:3]
    assert (started["event"], started["version"]) == ("started", msp_bridge.__version__)
    assert (request["message"]["method"], answer["message"]["result"]) == ("configure", VERSION)
    assert len(lines(file)) == 6
    assert stat.S_IMODE(file.stat().st_mode) == 0o600, "it holds your code"


@pytest.mark.skipif(sys.platform == "win32", reason="files have no such modes there")
def test_a_trace_file_that_exists_is_made_private(file: Path) -> None:
    file.write_text("")
    file.chmod(0o666)
    Trace(file, redact_token).close()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


async def test_nothing_is_traced_without_the_option(project: ScriptedProject, tmp_path: Path) -> None:
    before = set(tmp_path.rglob("*"))
    cache = project.root.parent / "cache"  # a directory for the project is made there
    async with over_stdio(project) as client:
        assert await client.request("configure") == VERSION
    assert {
        path
        for path in set(tmp_path.rglob("*")) - before
        if path != project.events / "log" and cache not in (path, path.parent)
    } == set()


@pytest.mark.parametrize("option", ["--trace", "--log-file"])
@pytest.mark.parametrize("named", ["project/x", "project/sub/x", "link/x"])
def test_a_file_in_the_project_is_not_written_to(
    option: str,
    named: str,
    project: ScriptedProject,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (project.root / "sub").mkdir()
    project.root.with_name("link").symlink_to(project.root / "sub")
    file = project.root.parent / named
    code, err = refused_by(monkeypatch, capsys, "stdio", "--root", str(project.root), option, str(file))
    assert code == 2
    assert f"{option}: {file} lies in the project, which is never written to: name a file outside, such as /" in err
    assert not file.exists()


@pytest.mark.parametrize("option", ["--trace", "--log-file"])
def test_a_file_that_cannot_be_written_is_an_error(
    option: str, project: ScriptedProject, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(project.root.parent / "no" / "such")
    said = f"msp-bridge: {option}: can't write {file}: No such file or directory\n"
    assert refused_by(monkeypatch, capsys, "stdio", "--root", str(project.root), option, file) == (2, said)


@pytest.mark.parametrize("dashes", [(), ("--",)], ids=["before", "after"])
async def test_a_log_file_has_what_stderr_has_with_times(
    dashes: tuple[str, ...], project: ScriptedProject, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    options = ("--adapter", "scripted", "--log-file", str(log), "--log-level", "debug")
    async with on_stdio(project, *dashes, *options) as (client, server):
        await client.send({"method": "unknown\nnotification\x1b[31m"})
        assert await client.request("configure") == VERSION
        await client.wire.aclose()
        assert await server.exited() == 0
    line = "ignoring the unknown notification 'unknown\\nnotification\\x1b[31m'"
    assert f"msp-bridge: DEBUG: {line}" in server.said
    (logged,) = [logged for logged in log.read_text().splitlines() if "unknown" in logged]
    time, _, rest = logged.partition(" DEBUG ")
    assert datetime.fromisoformat(time.replace(",", "."))
    assert rest == f"msp_bridge.jsonrpc.connection: {line}"


def logged_by(project: ScriptedProject, variable: str | None, *options: str) -> set[str]:
    """The levels of what `discover` logs on stderr of a project with a broken link."""
    environment = {"MSP_BRIDGE_LOG": variable} if variable is not None else {}
    code = "import logging, sys; from msp_bridge.cli.options import Options, bridge_options; import click\n"
    code += (
        "@click.command()\n@bridge_options\ndef command(**values):\n    Options.of(values).start_logging('warning')\n"
    )
    code += "    for level in (10, 20, 30, 40): logging.getLogger('x').log(level, 'said')\ncommand()"
    done = subprocess.run(
        [sys.executable, "-c", code, *options],
        cwd=project.root,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout == ""
    if done.returncode:
        return {done.stderr}
    return {line.split(": ")[1] for line in done.stderr.splitlines()}


def test_the_log_level_of_the_command_line_wins_over_the_environment(project: ScriptedProject) -> None:
    assert logged_by(project, None) == {"WARNING", "ERROR"}
    assert logged_by(project, "") == {"WARNING", "ERROR"}
    assert logged_by(project, "debug") == {"DEBUG", "INFO", "WARNING", "ERROR"}
    assert logged_by(project, "ERROR") == {"ERROR"}
    assert logged_by(project, "debug", "--log-level", "info") == {"INFO", "WARNING", "ERROR"}
    (line,) = logged_by(project, "loud")
    assert (
        "Invalid value for '--log-level' (env var: 'MSP_BRIDGE_LOG'): there is no 'loud'; choose from debug, " in line
    )


def test_a_log_file_has_what_is_of_interest_though_stderr_is_quieter(project: ScriptedProject, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.touch(0o644)
    assert logged_by(project, None, "--log-file", str(log)) == {"WARNING", "ERROR"}
    assert log.stat().st_mode & 0o777 == 0o600, "it names the project's files and tests"
    assert [line.split()[2] for line in log.read_text().splitlines()] == ["INFO", "WARNING", "ERROR"]
    assert logged_by(project, "error", "--log-file", str(log)) == {"ERROR"}
    assert len(log.read_text().splitlines()) == 4


async def test_the_environment_does_not_go_before_what_stands_before_the_dashes(
    project: ScriptedProject, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MSP_BRIDGE_LOG", "debug")
    log = tmp_path / "log"
    options = ("--adapter", "scripted", "--log-level", "error", "--", "--log-file", str(log))
    async with on_stdio(project, *options) as (client, server):
        await client.send({"method": "unknown"})
        assert await client.request("configure") == VERSION
        await client.wire.aclose()
        assert await server.exited() == 0
    assert server.said == []
    assert log.read_text() == ""
