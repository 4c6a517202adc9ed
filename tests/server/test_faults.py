"""What goes wrong around a server: clogged clients, ports that are taken, wrong options, and bytes that are no messages."""

import asyncio
import re
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
from support.msp_client import framed
from support.servers import (
    DIGIT,
    LOOK,
    ScriptedProject,
    launched,
    mutants_of,
    on_socket,
    on_stdio,
    over_stdio,
    refused_by,
    until,
)

DONE: dict[str, Any] = {"files": {}}
VERSION = {"version": "0.4.0"}
MB = 1024 * 1024
MANY = 20_000  # mutants; with 10 kB to say of each they are 200 MB, which must stay with the tool


async def test_a_client_that_never_reads_stops_its_own_tool_alone(project: ScriptedProject) -> None:
    project.write("a.py", "g 1 1")
    project.write("many.py", "x\n" * MANY)
    project.script({"mutator": "gated", "find": "g", "replacement": "", "after": "gate"}, DIGIT)
    async with on_socket(project) as (client, server):
        older = await client.ask("mutationTest", {"files": [{"path": "a.py"}]})
        await project.logged("waiting for gate")
        process = psutil.Process(server.process.pid)
        clogged = await server.connect()
        project.script({"mutator": "x", "find": "x", "replacement": "y"}, tool="flood", lines=True)
        await clogged.ask("mutationTest")
        await project.started("flood")
        before = process.memory_info().rss
        started = await stalled(project)
        assert 0 < started < MANY
        assert process.memory_info().rss - before < 100 * MB
        project.open("gate")
        assert await client.result(older) == DONE, "a newer request that waits for its client holds up nobody"
        assert len(client.take_results()) == 3
        for _ in range(5):
            assert len(mutants_of(await client.request("discover", {"files": [{"path": "a.py"}]}))) == 0
        project.script(DIGIT)
        assert await client.request("mutationTest", {"files": [{"path": "a.py"}]}) == DONE
        assert len(client.take_results()) == 2
        assert await stalled(project) < MANY
        assert process.memory_info().rss - before < 100 * MB
        await server.terminated()


async def stalled(project: ScriptedProject) -> int:
    """How many mutants of the clogged client have been begun, when no more are. Looking too early only weakens the test."""
    counts = [-1, -2, -3]
    while len(set(counts[-3:])) > 1 or counts[-1] <= 0:
        await asyncio.sleep(10 * LOOK)
        counts.append(sum(line.startswith("started many.py") for line in project.log))
    return counts[-1]


async def test_a_clogged_client_whose_run_is_cancelled_by_leaving_frees_its_tool(project: ScriptedProject) -> None:
    project.write("many.py", "x\n" * 3000)
    project.script({"mutator": "x", "find": "x", "replacement": "y"}, tool="flood", lines=True)
    async with on_stdio(project) as (client, server):
        await client.ask("mutationTest")
        await stalled(project)
        await client.wire.aclose()
        assert await server.exited() == 0
        assert project.alive() == []


async def test_discovering_thirty_thousand_mutants_delays_no_other_client(project: ScriptedProject) -> None:
    project.script({"mutator": "x", "find": "x", "replacement": "y"})
    for number in range(6):
        project.write(f"big{number}.py", "x\n" * 5_000)
    async with on_socket(project) as (client, server):
        other = await server.connect()
        answer = asyncio.create_task(client.request("discover"))
        cancelled = await other.ask("discover")
        await other.cancelled(cancelled)
        assert await other.request("mutationTest", {"files": []}) == DONE
        assert not answer.done(), "the small request was answered only after the big one"
        assert len({mutant["id"] for _, mutant in mutants_of(await answer)}) == 30_000
        await server.terminated()


async def test_what_an_adapter_prints_goes_to_stderr(project: ScriptedProject) -> None:
    project.write("a.py", "1")
    project.script(discovery={"say": "chatter\n"}, testing={"say": "Content-Length: 3\r\n\r\n{}}\n"})
    async with on_stdio(project) as (client, server):
        assert len(mutants_of(await client.request("discover"))) == 1
        assert await client.request("mutationTest") == DONE
        await client.wire.aclose()
        assert await client.ended() == b""
        assert await server.exited() == 0
        await until(lambda: server.said.count("chatter") == 4)


async def test_stdin_may_be_a_regular_file(project: ScriptedProject, tmp_path: Path) -> None:
    requests = tmp_path / "requests"
    requests.write_bytes(b"".join(framed({"jsonrpc": "2.0", "id": id, "method": "configure"}) for id in range(3)))
    with requests.open("rb") as stdin:
        async with launched(project.root, "serve", "stdio", stdin=stdin) as server:
            assert server.process.stdout is not None
            answers = await server.process.stdout.read()
            assert await server.exited() == 0
    body = rb'\{"jsonrpc":"2\.0","id":%d,"result":\{"version":"0\.4\.0"\}\}'
    assert re.fullmatch(rb"".join(rb"Content-Length: \d+\r\n\r\n" + body % id for id in range(3)), answers)


async def test_a_port_that_is_taken_is_one_clear_line_and_exit_code_1(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        code, out, err = await ran(tmp_path, "serve", "socket", "--port", str(port), "--address", "127.0.0.1")
    assert (code, out) == (1, b"")
    assert err.decode().splitlines() == [
        f"msp-bridge: port {port} on 127.0.0.1 is already in use: stop what uses it, or choose another (0 picks a free one)"
    ]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("socket", "serve socket needs --port; 0 picks a free one"),
        ("stdio --port 5", "--port and --address are for `serve socket`"),
        ("pigeon", "there is no 'pigeon'; choose from stdio, socket"),
        ("", "Missing argument"),
        ("socket --port 70000", "70000 is not in the range"),
        ("stdio -- --no-such-option", "No such option"),
        ("stdio -- --jobs 0", "0 is not in the range"),
        ("stdio -- --adapter scriptde", "--adapter: there is no adapter 'scriptde': did you mean 'scripted'?"),
        ("stdio --root no/such", "--root: there is no directory"),
    ],
)
def test_a_wrong_command_line_is_an_error_on_stderr_alone(
    arguments: str, expected: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, err = refused_by(monkeypatch, capsys, *arguments.split())
    assert code == 2
    assert expected in " ".join(err.split())
    assert len(err.splitlines()) == 1 or err.startswith("Usage: ")


async def ran(cwd: Path, *arguments: str) -> tuple[int, bytes, bytes]:
    """Exit code, stdout and stderr of `msp-bridge` that ends by itself."""
    async with launched(cwd, *arguments, stdin=asyncio.subprocess.DEVNULL) as server:
        assert server.process.stdout is not None
        out = await server.process.stdout.read()
        code = await server.exited()
    return code, out, "\n".join(server.said).encode()


@pytest.mark.parametrize("dashes", [[], ["--"]], ids=["before", "after"])
async def test_the_bridges_options_may_stand_before_and_after_the_dashes(
    dashes: list[str], project: ScriptedProject, tmp_path: Path
) -> None:
    project.write("a.py", "1")
    options = ["--adapter", "scripted", "--root", str(project.root), "--log-level", "debug", "--jobs", "1"]
    async with launched(tmp_path, "serve", "socket", "--port", "0", *dashes, *options, forked=True) as server:
        client = await server.connect()
        assert set((await client.request("discover"))["files"]) == {"a.py"}
        await client.send({"method": "unknown"})
        await until(lambda: any("DEBUG: ignoring the unknown notification" in line for line in server.said))
        await client.wire.aclose()
        await server.terminated()


async def test_the_configuration_file_of_the_command_line_is_the_default(
    project: ScriptedProject,
) -> None:
    project.write("a.py", "1 x")
    named = project.script({"mutator": "x", "find": "x", "replacement": "y"}, name="named.json")
    async with over_stdio(project, "--adapter", "scripted", "--", "--config", named) as client:
        ((_, mutant),) = mutants_of(await client.request("discover"))
        assert mutant["mutatorName"] == "x"
        assert await client.request("configure", {"configFilePath": "scripted.json"}) == VERSION
        ((_, mutant),) = mutants_of(await client.request("discover"))
        assert mutant["mutatorName"] == "digit"


def test_a_server_without_stdin_ends_with_an_error(tmp_path: Path) -> None:
    command = 'exec "$0" -m msp_bridge serve stdio 0<&-'
    server = subprocess.run(["sh", "-c", command, sys.executable], cwd=tmp_path, capture_output=True, timeout=60)
    assert (server.returncode, server.stdout) == (1, b"")
    assert server.stderr.startswith(b"msp-bridge: can't serve stdio: stdin or stdout is closed")
    assert len(server.stderr.splitlines()) == 1
