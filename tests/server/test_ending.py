"""How requests, clients and servers end: whatever had been started has ended by then."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager

import pytest
from support.msp_client import Client, ReaderWriter, framed
from support.servers import DIGIT, ScriptedProject, Server, launched, on_socket, on_stdio, until

Started = Callable[[ScriptedProject], AbstractAsyncContextManager[tuple[Client, Server]]]
both = pytest.mark.parametrize("start", [on_stdio, on_socket], ids=["stdio", "tcp"])


@contextlib.asynccontextmanager
async def hanging_run(project: ScriptedProject, start: Started) -> AsyncIterator[tuple[Client, Server, int]]:
    """A server whose first request hangs while its tools run: a warm one, one that can be asked to end, and its daemon."""
    project.write("a.py", "1")
    project.script(tool="daemon", warm="stubborn", lines=True)
    async with start(project) as (client, server):
        id = await client.ask("mutationTest")
        await project.started("stubborn")
        await project.started("hang")
        assert project.alive() == ["daemon", "hang", "stubborn"]
        yield client, server, id


@both
async def test_a_cancel_is_answered_when_the_tool_is_gone(start: Started, project: ScriptedProject) -> None:
    async with hanging_run(project, start) as (client, server, id):
        await client.cancel(id)
        assert (await client.answer(id))["error"] == {"code": -32800, "message": "mutationTest was cancelled"}
        assert project.alive() == ["stubborn"], "the warm tool alone stays for the next request"
        project.script(warm="stubborn")
        assert await client.request("mutationTest") == {"files": {}}
        assert len(client.take_results()) == 1
        assert len(project.ready("stubborn")) == 1
        await server.terminated()  # it is idle, with its warm tool
        assert project.alive() == []


@pytest.mark.parametrize(
    ("start", "how"),
    [
        (on_stdio, "end of stdin"),
        (on_stdio, "SIGTERM"),
        (on_stdio, "SIGINT"),
        (on_socket, "SIGTERM"),
        (on_socket, "SIGINT"),
    ],
)
async def test_a_signal_or_end_of_input_ends_everything_with_exit_code_0(
    start: Started, how: str, project: ScriptedProject
) -> None:
    async with hanging_run(project, start) as (client, server, _):
        if how == "end of stdin":
            await client.wire.aclose()
        else:
            server.process.send_signal(getattr(signal, how))
        assert await server.exited() == 0
        assert project.alive() == []
        assert "Traceback" not in "\n".join(server.said)


@both
async def test_tools_end_even_when_the_server_is_killed(start: Started, project: ScriptedProject) -> None:
    async with hanging_run(project, start) as (_, server, _id):
        server.process.kill()
        assert await server.exited() == -signal.SIGKILL
        await until(lambda: project.alive() == [])


@pytest.mark.parametrize("how", ["graceful", "abort"])
async def test_a_client_that_leaves_ends_its_own_tools_and_no_others(how: str, project: ScriptedProject) -> None:
    project.write("a.py", "1")
    project.script(tool="hang", lines=True)
    async with on_socket(project) as (client, server):
        staying = await client.ask("mutationTest")
        first = await project.started("hang")
        leaving = await server.connect()
        project.script(tool="stubborn", lines=True)
        await leaving.ask("mutationTest")
        await project.started("stubborn")
        assert isinstance(leaving.wire, ReaderWriter)
        if how == "abort":
            leaving.wire.abort()
        else:
            await leaving.wire.aclose()
        await until(lambda: project.alive() == ["hang"])
        assert project.running("hang") == [first]
        project.script()
        assert await client.request("mutationTest") == {"files": {}}
        assert project.alive() == ["hang"]
        await client.cancelled(staying)
        assert project.alive() == []
        await server.terminated()


SIGNALLED = """
import os, signal, sys
from msp_bridge.cli import main, serve

def now():
    os.kill(os.getpid(), signal.SIGTERM)

options, run, stdio = serve.Options.of, serve.asyncio.run, serve.serve_stdio

async def signalled_stdio(*arguments):
    now()
    await stdio(*arguments)

if sys.argv[1] == "reading the options":
    serve.Options.of = lambda values, **more: now() or options(values, **more)
elif sys.argv[1] == "starting the event loop":
    serve.serve_stdio = signalled_stdio
else:
    serve.asyncio.run = lambda main: run(main) or now()
sys.argv = ["msp-bridge", "serve", "stdio"]
main()
"""


@pytest.mark.parametrize("during", ["reading the options", "starting the event loop", "the exit"])
def test_a_signal_outside_of_serving_ends_in_order_too(during: str, project: ScriptedProject) -> None:
    command = [sys.executable, "-c", SIGNALLED, during]
    ended = subprocess.run(command, cwd=project.root, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    assert (ended.returncode, b"Traceback" in ended.stderr) == (0, False), ended.stderr


LOADING = """
import os, runpy, sys

class Signal:
    def find_spec(self, name, path, target=None):
        if name == MODULE:
            os.kill(os.getpid(), NUMBER)

NUMBER, MODULE, *sys.argv[1:] = int(sys.argv[1]), *sys.argv[2:]
sys.meta_path.insert(0, Signal())
runpy.run_module("msp_bridge", run_name="__main__")
"""


BEFORE_SERVING = ("msp_bridge.cli", "click", "msp_bridge.cli.serve", "msp_bridge.dialects.msp")


@pytest.mark.parametrize(
    ("command", "code", "number", "module"),
    [
        *(("serve", 0, number, module) for number in (signal.SIGTERM, signal.SIGINT) for module in BEFORE_SERVING),
        *(("run", 130, signal.SIGINT, module) for module in ("msp_bridge.cli", "click")),
    ],
)
def test_a_signal_while_modules_are_loaded_is_no_crash(
    command: str, code: int, number: signal.Signals, module: str, project: ScriptedProject
) -> None:
    ended = subprocess.run(
        [
            sys.executable,
            "-c",
            LOADING,
            str(int(number)),
            module,
            *{"serve": ["serve", "stdio"]}.get(command, [command]),
        ],
        cwd=project.root,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
    )
    assert (ended.returncode, b"Traceback" in ended.stderr) == (code, False), ended.stderr


async def test_a_second_signal_while_tools_end_changes_nothing(project: ScriptedProject) -> None:
    async with hanging_run(project, on_stdio) as (_, server, _id):
        for _ in range(3):
            server.process.terminate()
            await asyncio.sleep(0.05)
            if server.process.returncode is not None:
                break
        assert await server.exited() == 0
        assert project.alive() == []


@pytest.mark.parametrize(
    ("channel", "asked"),
    [
        (("stdio", "--", "--adapter", "scripted"), framed({"jsonrpc": "2.0", "id": 1, "method": "mutationTest"})),
        (("mcp", "--adapter", "scripted"), b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n'),
    ],
    ids=["msp", "mcp"],
)
async def test_a_client_that_reads_no_more_has_left_and_its_tool_ends(
    channel: tuple[str, ...], asked: bytes, project: ScriptedProject
) -> None:
    """It has closed our stdout, and keeps our stdin open. With MSP a result shows it, while a tool runs for the next one."""
    project.write("a.py", "1 x")
    x = {"mutator": "x", "find": "x", "replacement": "y", "after": "never"}
    project.script({**DIGIT, "after": "gate"}, x, tool="stubborn")
    ours, theirs = os.pipe()
    async with launched(project.root, "serve", *channel, forked=True, stdout=theirs) as server:
        os.close(theirs)
        assert server.process.stdin is not None
        if channel[0] == "mcp":
            os.close(ours)
            server.process.stdin.write(asked)
        else:
            server.process.stdin.write(asked)
            await project.started("stubborn")
            os.close(ours)
            project.open("gate")
        assert await server.exited() == 0, server.said
    assert project.alive() == []
    assert "Traceback" not in "\n".join(server.said)
