"""`serve mcp` by the book of MCP: what is served, refused and left out, and how much of it, on a scripted tool."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from typing import Any, get_args

import mcp_types
import pytest
from support.dialects import Mcp, Talker, agent_on, called, miscalled, opened, spoken_to
from support.msp_client import Refused
from support.servers import LOOK, ScriptedProject, launched, until

from msp_bridge.mcp import server
from msp_bridge.mcp.answers import MAX_LIST, MAX_TEXT, REPORT
from msp_bridge.mcp.tools import TOOLS

ABOUT = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
VERSIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]  # those that begin with `initialize`
SERVED = {
    *("initialize", "ping", "tools/list", "tools/call", "resources/list", "resources/read"),
    *("prompts/list", "prompts/get"),
}
PARAMS: dict[str, Any] = {  # right ones, for methods that need some
    "completion/complete": {"ref": {"type": "ref/prompt", "name": "a"}, "argument": {"name": "a", "value": "b"}},
    "logging/setLevel": {"level": "info"},
    "resources/subscribe": {"uri": "a:b"},
    "resources/unsubscribe": {"uri": "a:b"},
    "notifications/cancelled": {"requestId": 999},
    "notifications/progress": {"progressToken": 1, "progress": 1},
}


def methods(union: Any) -> list[str]:
    """Of all messages in a union of the SDK's."""
    return sorted(message.model_fields["method"].default for message in get_args(union))


@pytest.fixture
async def client(project: ScriptedProject) -> AsyncIterator[Talker]:
    """One that has sent nothing yet."""
    async with opened(project) as workspaces, spoken_to(Mcp(project.root), workspaces) as client:
        yield client


@pytest.fixture
async def agent(project: ScriptedProject) -> AsyncIterator[Talker]:
    async with agent_on(project) as agent:
        yield agent


@pytest.mark.parametrize("version", [*VERSIONS, "1999-01-01"])
async def test_the_version_is_the_one_that_the_client_wants_if_it_is_served(version: str, client: Talker) -> None:
    answer = await client.request("initialize", {**ABOUT, "protocolVersion": version})
    assert answer["protocolVersion"] == (version if version in VERSIONS else VERSIONS[-1])
    assert answer["serverInfo"]["name"] == "msp-bridge"
    assert answer["capabilities"].keys() == {"tools", "resources", "prompts"}
    assert "show_mutant" in answer["instructions"]


async def test_before_initialize_a_ping_is_answered_and_all_else_is_refused(client: Talker) -> None:
    await client.send({"method": "notifications/roots/list_changed"}, {"method": "unheard/of"})
    assert await client.request("ping") == {}
    for method in ("tools/list", "tools/call", "resources/list"):
        assert (await client.refused(method, {}))[0] == -32602
    assert (await client.refused("initialize", {}))[0] == -32602
    await Mcp().greet(client)
    assert len((await client.request("tools/list"))["tools"]) == 8


@pytest.mark.parametrize("method", sorted(set(methods(mcp_types.ClientRequest)) - SERVED))
async def test_a_method_that_is_not_served_is_no_method(method: str, agent: Talker) -> None:
    assert (await agent.refused(method, PARAMS.get(method, {})))[0] == -32601


@pytest.mark.parametrize("method", [*methods(mcp_types.ClientNotification), "notifications/unheard_of"])
async def test_notifications_are_never_answered(method: str, agent: Talker) -> None:
    await agent.send({"method": method, "params": PARAMS.get(method, {})}, {"method": method, "params": {"odd": 1}})
    assert await agent.request("ping") == {}
    assert (agent.notified, agent._answers) == ([], {})


async def test_wrong_params_are_refused_and_the_session_goes_on(agent: Talker) -> None:
    for method, params in (
        ("tools/call", {}),
        ("tools/call", {"name": "no_tool"}),
        ("tools/call", {"name": "survivors", "arguments": []}),
        ("resources/read", {}),
        ("prompts/get", {"name": "no_prompt"}),
        ("prompts/get", {"name": "raise_score"}),
    ):
        assert (await agent.refused(method, params))[0] == -32602
    assert "there is no resource" in (await agent.refused("resources/read", {"uri": "no:resource"}))[1]
    for params in ([1], "1", 1):  # a message of MCP has an object there
        assert (await agent.refused("tools/list", params))[0] == -32600
    (resource,) = (await agent.request("resources/list"))["resources"]
    assert resource["uri"] == REPORT


async def test_the_prompt_names_the_file_and_tools_that_there_are(project: ScriptedProject, agent: Talker) -> None:
    project.write("a.py", "1")
    (prompt,) = (await agent.request("prompts/list"))["prompts"]
    assert [argument["name"] for argument in prompt["arguments"]] == ["file"]
    got = await agent.request("prompts/get", {"name": prompt["name"], "arguments": {"file": "a.py"}})
    (message,) = got["messages"]
    text = message["content"]["text"]
    assert 'Call test_mutants with paths ["a.py"]' in text
    assert set(re.findall(r"\b\w+_(?:mutants?|survivor)\b", text)) <= TOOLS.keys()
    missing = {"name": prompt["name"], "arguments": {"file": "b.py"}}
    code, problem = await agent.refused("prompts/get", missing)
    assert code == -32602
    assert "b.py" in problem


async def test_a_fault_of_ours_is_a_result_that_says_so(project: ScriptedProject, agent: Talker) -> None:
    project.write("a.py", "1")
    project.script(testing={"raises": ["RuntimeError", "a bug"]})
    assert "This is a fault of msp-bridge" in await miscalled(agent, "test_mutants")
    project.script()
    assert (await called(agent, "test_mutants"))["tested"] == 1


async def test_answers_stay_short_however_many_mutants_there_are(project: ScriptedProject, agent: Talker) -> None:
    names = [f"tests/test_large.py::test_{number}" for number in range(50)]
    details = {"covered_by": names, "status_reason": "why\n" * 5_000}
    project.script({"mutator": "digit", "find": "1", "replacement": "2", "status": "Survived", "details": details})
    project.write("large.py", "".join(f"a = 1  # {'text ' * 100}\n" for _ in range(1200)))

    async def answered(tool: str, **arguments: Any) -> Any:
        """What a tool answers, in at most 600 characters for each mutant of a list, and 9000 for a diff with all of its lines."""
        result = await agent.request("tools/call", {"name": tool, "arguments": arguments})
        answer = result["structuredContent"]
        mutants = len(answer.get("mutants", answer.get("survivors", ())))
        assert len(result["content"][0]["text"]) <= min(600 * mutants, MAX_TEXT) + 9000
        assert len(json.dumps(answer)) <= min(900 * mutants, MAX_LIST) + 9000
        return answer

    listed: list[str] = []
    cursor: dict[str, str] | None = {}
    while cursor is not None:
        page = await answered("list_mutants", **cursor)
        assert (page["total"], len(page["mutants"])) == (1200, 50)
        listed += [mutant["id"] for mutant in page["mutants"]]
        assert [mutant["line"] for mutant in page["mutants"]] == list(range(len(listed) - 49, len(listed) + 1))
        cursor = None if page["next_cursor"] is None else {"cursor": page["next_cursor"]}
    assert len(listed) == len(set(listed)) == 1200

    for untested in (1100, 0):
        report = await answered("test_mutants", limit=100 if untested else 2000)
        assert (report["selected"], report["untested"]) == (1200, untested)
        assert len(report["survivors"]) == 10
    assert len((await answered("survivors"))["survivors"]) == 10
    most = await answered("survivors", limit=200)
    assert 60 < len(most["survivors"]) < 200
    assert len(most["survivors"]) + most["more_survivors"] == 1200
    shown = await answered("show_mutant", id=listed[0])
    assert len(shown["covering_tests"]) == 20


async def test_calls_run_at_once_and_each_is_answered_when_it_is_done(project: ScriptedProject, agent: Talker) -> None:
    project.write("a.py", "7")
    project.write("b.py", "1")
    project.script(
        {"mutator": "gated", "find": "7", "replacement": "8", "after": "gate"},
        {"mutator": "one", "find": "1", "replacement": "2"},
    )
    waiting = await agent.ask("tools/call", {"name": "test_mutants", "arguments": {"paths": ["a.py"]}})
    await project.logged("waiting for gate")
    assert (await called(agent, "test_mutants", paths=["b.py"]))["counts"] == {"Killed": 1}
    project.open("gate")
    assert (await agent.result(waiting))["structuredContent"]["counts"] == {"Killed": 1}
    assert (await called(agent, "survivors"))["tested"] == 2


async def test_one_request_too_many_is_an_error_and_the_others_go_on(
    project: ScriptedProject, agent: Talker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "MAX_OPEN", 3)
    project.write("a.py", "1")
    project.script(testing={"after": "gate"})
    call = {"name": "test_mutants", "arguments": {}}
    waiting = [await agent.ask("tools/call", call) for _ in range(3)]
    with pytest.raises(Refused, match="3 requests have no answer yet; wait for one of them, or cancel it") as error:
        await agent.request("ping")
    assert error.value.code == -32803
    await Mcp().cancel(agent, waiting.pop())
    assert await agent.request("ping") == {}
    project.open("gate")
    for id in waiting:
        assert (await agent.result(id))["structuredContent"]["tested"] == 1
    assert await agent.request("ping") == {}


async def test_a_client_that_sends_and_never_reads_is_read_no_further(agent: Talker) -> None:
    pings = [{"id": f"p{number}", "method": "ping"} for number in range(4_000)]
    sending = asyncio.create_task(agent.send(*pings))
    tasks = [-1]
    while len(tasks) < 5 or len(set(tasks[-4:])) > 1:  # looking too early only weakens the test
        await asyncio.sleep(10 * LOOK)
        tasks.append(len(asyncio.all_tasks()))
    assert not sending.done(), "the server has read all"
    assert max(tasks) < server.MAX_OPEN + 50
    for ping in pings:
        answer = await agent.answer(ping["id"])
        assert answer.get("result") == {} or answer["error"]["code"] == -32803
    await sending


async def test_a_line_that_is_too_long_ends_the_connection(agent: Talker, caplog: pytest.LogCaptureFixture) -> None:
    await agent.send({"id": 1, "method": "ping", "params": {"x": "y" * server.MAX_MESSAGE}})
    await until(lambda: f"longer than {server.MAX_MESSAGE} bytes: the connection ends" in caplog.text)


@pytest.mark.parametrize(
    "option", [["--address", "::1"], ["--token-file", "token"], ["--tls-cert", "a.pem", "--tls-key", "b.pem"]]
)
async def test_options_for_listening_need_a_port(option: list[str], project: ScriptedProject) -> None:
    async with launched(project.root, "serve", "mcp", *option, forked=True) as started:
        assert await started.exited() == 2
    assert f"{option[0]} is for `serve mcp --port N`: without a port it serves stdio" in " ".join(started.said)
