"""`serve mcp --port`: the SDK's client over a real port; what its calls, cancels, disappearance and a signal do."""

import asyncio
import re
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import MCPError
from support.mcp_http import HttpServer, calling, hanging, http_server, session_of, structured
from support.msp_client import LONG
from support.servers import ScriptedProject, launched, until
from support.socket_servers import tls_of_both, token_file

from msp_bridge.mcp import running_calls
from msp_bridge.mcp.running_calls import RunningCalls

modes = pytest.mark.parametrize("mode", ["legacy", "auto"])


async def answer_of(client: Any, tool: str, **options: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, {}, **options)
    assert not result.is_error, result
    answer: dict[str, Any] = result.structured_content
    return answer


@modes
async def test_an_agent_calls_tools_over_http_and_hears_of_their_progress(mode: str, server: HttpServer) -> None:
    heard: list[tuple[float, float | None]] = []

    async def hear(progress: float, total: float | None, _: str | None) -> None:
        heard.append((progress, total))

    async with server.agent(mode) as client:
        assert "test_mutants" in [tool.name for tool in (await client.list_tools()).tools]
        assert (await answer_of(client, "test_mutants", progress_callback=hear))["tested"] == 1
        await until(lambda: (1, 1) in heard)  # with `legacy` it may come after the answer
        assert sorted(set(heard)) == heard
        with pytest.raises(MCPError, match="there is no tool"):
            await client.call_tool("no_tool", {})


async def test_clients_share_what_is_known(server: HttpServer) -> None:
    async with server.agent("legacy") as one, server.agent("auto") as other:
        assert (await answer_of(one, "test_mutants"))["tested"] == 1
        assert (await answer_of(other, "survivors"))["tested"] == 1


@modes
async def test_a_cancel_ends_the_call_and_no_other(mode: str, server: HttpServer, project: ScriptedProject) -> None:
    project.script(tool="hang", lines=True)
    async with server.agent(mode) as client, server.agent(mode) as other:
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: client.call_tool("test_mutants", {}))
            await project.started("hang")
            group.cancel_scope.cancel()
        await until(lambda: project.alive() == [])
        project.script()
        assert (await answer_of(other, "test_mutants"))["tested"] == 1
        assert (await answer_of(client, "survivors"))["tested"] == 1


async def test_the_calls_of_a_client_that_vanishes_are_cancelled_and_its_session_stays(
    server: HttpServer, project: ScriptedProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running_calls, "GONE_S", 0.01)
    project.script(tool="hang", lines=True)
    async with server.plain() as client:
        session = await session_of(client)
        async with client.stream("POST", "", json=calling("test_mutants"), headers=session):
            await project.started("hang")
        await until(lambda: project.alive() == [])
        project.script()
        assert (await structured(client, session, "test_mutants"))["tested"] == 1


async def test_a_call_goes_on_while_its_client_has_another_connection(
    server: HttpServer, project: ScriptedProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running_calls, "GONE_S", 0.01)
    project.script({"mutator": "gated", "find": "1", "replacement": "2", "after": "gate"})
    async with server.plain() as client:
        session = await session_of(client)
        async with client.stream("GET", "", headers=session) as events:
            assert events.headers["content-type"].startswith("text/event-stream")
            async with client.stream("POST", "", json=calling("test_mutants"), headers=session):
                await project.logged("waiting for gate")
            project.open("gate")
            async with asyncio.timeout(LONG):
                while (await structured(client, session, "survivors"))["tested"] == 0:
                    await asyncio.sleep(0)


async def test_a_client_that_comes_back_in_time_keeps_its_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running_calls, "GONE_S", 0)
    calls, gate = RunningCalls(), asyncio.Event()
    with calls.attended("a"):
        call = asyncio.create_task(calls.finished("a", gate.wait()))
        await turns_of_the_loop()
    with calls.attended("a"):
        await turns_of_the_loop()
        gate.set()
        assert await call
        call = asyncio.create_task(calls.finished("a", asyncio.Event().wait()))
        await turns_of_the_loop()
    with pytest.raises(MCPError, match="its client was gone"):
        await call


async def turns_of_the_loop() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_a_request_of_version_2026_07_28_ends_with_its_connection(
    server: HttpServer, project: ScriptedProject
) -> None:
    project.script(tool="hang", lines=True)
    async with server.plain() as client:
        call = asyncio.create_task(hanging(client, "auto"))
        await project.started("hang")
        call.cancel()
        await until(lambda: project.alive() == [])


async def test_deleting_a_session_ends_its_calls_at_once(server: HttpServer, project: ScriptedProject) -> None:
    project.script(tool="hang", lines=True)
    async with server.plain() as client:
        session = await session_of(client)
        async with client.stream("POST", "", json=calling("test_mutants"), headers=session):
            await project.started("hang")
            assert (await client.delete("", headers=session)).status_code == 200
            await until(lambda: project.alive() == [])
        assert (await client.post("", json=calling("survivors"), headers=session)).status_code == 404


async def test_one_call_too_many_is_an_error(
    server: HttpServer, project: ScriptedProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running_calls, "MAX_OPEN", 1)
    project.script({"mutator": "gated", "find": "1", "replacement": "2", "after": "gate"})
    async with server.agent() as client:
        waiting = asyncio.create_task(client.call_tool("test_mutants", {}))
        await project.logged("waiting for gate")
        with pytest.raises(MCPError, match="1 calls are running"):
            await client.call_tool("survivors", {})
        project.open("gate")
        assert (await waiting).structured_content["tested"] == 1


async def test_over_https_with_a_certificate(project: ScriptedProject, tmp_path: Path) -> None:
    tls, trusting = tls_of_both(tmp_path)
    async with http_server(project, tmp_path, tls) as server, server.agent(verify=trusting) as client:
        assert (await answer_of(client, "survivors"))["tested"] == 0


@modes
async def test_a_signal_ends_a_server_on_http_with_all_that_runs(
    mode: str, project: ScriptedProject, tmp_path: Path
) -> None:
    project.write("a.py", "1")
    project.script(tool="daemon", warm="stubborn", lines=True)
    options = ("--port", "0", "--token-file", str(token_file(tmp_path)), "--adapter", "scripted")
    async with launched(project.root, "serve", "mcp", *options, forked=True) as started:
        _, port = await started.address()
        async with HttpServer(port).plain() as client:
            call = asyncio.create_task(hanging(client, mode))
            await project.started("hang")
            await project.started("stubborn")
            started.process.terminate()
            assert await started.exited() == 0
            await call
        assert project.alive() == []
        assert started.process.stdout is not None
        assert await started.process.stdout.read() == b""
    assert "Traceback" not in "\n".join(started.said)
    assert re.search(r"serving MCP over HTTP \(path /mcp\) on ", "\n".join(started.said))
