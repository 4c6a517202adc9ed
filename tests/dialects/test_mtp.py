"""Microsoft.Testing.Platform's server mode: two clients, with real mutmut; and what else its book says."""

import asyncio
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from msp_bridge.adapters.stryker_net.hosts import Link
from msp_bridge.adapters.stryker_net.testing_platform import HostProgram
from support.dialects import Mtp, Talker, greeted
from support.node_clients import python_project, talked
from support.servers import DIGIT, ScriptedProject, environment, launched, on_stdio

from msp_bridge.dialects.mtp import Mtp as MtpDialect
from msp_bridge.testing import RunningProcesses

RUN = "3c6e8af3-8a44-40ed-8d3a-ee6f1b818d69"
UPDATES = "testing/testUpdates/tests"


@pytest.fixture
def speech() -> Mtp:
    return Mtp()


def nodes(client: Talker) -> list[dict[str, Any]]:
    """Of all updates so far, which are dropped, in order."""
    received, client.notified = client.notified, []
    updates = [params["changes"] for method, params in received if method == UPDATES]
    assert updates[-1] is None
    return [change["node"] for changes in updates[:-1] for change in changes]


@pytest.mark.parametrize("channel", ["stdio", "socket", "listen"])
async def test_a_client_written_from_the_text_is_served(channel: str, tmp_path: Path) -> None:
    root = python_project(tmp_path)
    chosen = ["mtp"] if channel == "listen" else ["--dialect", "mtp"]
    facts = await talked("mtp.mjs", root, channel, *chosen)
    assert facts["codes"] == {"early": -32002, "twice": -32600, "cancel": -32800, "unknown": -32601}
    assert facts["initialized"]["serverInfo"] == {"name": "msp-bridge", "version": "1.0.0"}
    assert facts["initialized"]["capabilities"]["testing"]["experimental_multiRequestSupport"] is True
    assert facts["discovered"]["answer"] == {}
    assert {node["location.file"] for node in facts["groups"]} == {
        str(root / "src/calc/sums.py"),
        str(root / "src/calc/odd.py"),
    }
    assert {node["execution-state"] for node in facts["tests"]} == {"discovered"}
    assert [node["uid"] for node in facts["filtered"]["nodes"] if node["node-type"] == "action"] == [
        facts["tests"][0]["uid"]
    ]
    uids = {node["uid"] for node in facts["tests"]}
    assert facts["everything"]["answer"] == {"attachments": []}
    ended = {node["uid"]: node for node in facts["everything"]["nodes"] if node["node-type"] == "action"}
    assert ended.keys() == uids
    assert {node["execution-state"] for node in ended.values()} == {"passed", "failed"}
    for node in ended.values():
        states = [state for uid, state in facts["everything"]["states"] if uid == node["uid"]]
        assert states == ["in-progress", node["execution-state"]]
        if node["execution-state"] == "failed":
            assert node["assert.expected"] != node["assert.actual"]
            assert node["error.message"]
    assert {node["uid"] for node in facts["some"]["nodes"] if node["node-type"] == "action"} == {
        node["uid"] for node in facts["tests"][:2]
    }
    of_group = {node["uid"] for node in facts["tests"] if node["location.file"] == facts["groups"][0]["location.file"]}
    assert {node["uid"] for node in facts["group"]["nodes"] if node["node-type"] == "action"} == of_group
    assert facts["completed"] == len(uids) + len(facts["groups"])
    assert facts["code"] == (None if channel == "socket" else 0)


async def test_the_client_that_drives_dotnet_test_programs_reads_it_too(tmp_path: Path) -> None:
    root = python_project(tmp_path)
    running = RunningProcesses()

    def argv(port: int) -> list[str]:
        options = ["--server", "--client-host", "127.0.0.1", "--client-port", str(port)]
        return [sys.executable, "-m", "msp_bridge", "serve", "mtp", *options, "--python", sys.executable]

    link = await Link.start("msp-bridge", argv, root, environment(root))
    try:
        host = HostProgram(link, "msp-bridge", stops=False)
        await host.run(None)
    finally:
        await link.end()
    assert host.fault is None
    states = Counter(case.failed for case in host.cases.values())
    assert states[True] > 0
    assert states[False] > 0
    assert len(host.failures) == states[True]
    assert await running.settled(0) == []


@pytest.mark.parametrize(
    ("became", "state"),
    [
        ("Killed", "passed"),
        ("Timeout", "passed"),
        ("Survived", "failed"),
        ("NoCoverage", "failed"),
        ("CompileError", "error"),
        ("RuntimeError", "error"),
        ("Ignored", "skipped"),
    ],
)
async def test_a_mutant_passes_when_the_tests_notice_it(
    became: str, state: str, project: ScriptedProject, client: Talker
) -> None:
    project.write("a.py", "x = 1\ny\n")
    project.script({**DIGIT, "status": became, "details": {"status_reason": "why", "duration": 1.5}})
    await Mtp().greet(client)
    assert await client.request("testing/runTests", {"runId": RUN}) == {"attachments": []}
    group, begun, ended = nodes(client)
    assert (group["uid"], group["node-type"]) == ("file:a.py", "group")
    assert begun["execution-state"] == "in-progress"
    assert ended | {"uid": "0"} == {
        "uid": "0",
        "display-name": "digit (1:5)",
        "node-type": "action",
        "location.file": str(project.root / "a.py"),
        "location.line-start": 1,
        "location.line-end": 1,
        "execution-state": state,
        "outcome-kind": became,
        "time.duration-ms": 1.5,
        "traits": [{"mutator": "digit"}, {"status": became}],
        **({"assert.expected": "x = 1", "assert.actual": "x = 2"} if state == "failed" else {}),
        **({"error.message": ended["error.message"]} if state != "passed" else {}),
    }
    assert ended.get("error.message") == {
        "Survived": "survived: no test fails with this change",
        "NoCoverage": "no test runs this code",
    }.get(became, "why" if state in ("error", "skipped") else None)


@pytest.mark.parametrize("name", ["tests", "testCases"])
async def test_the_nodes_of_another_process_select_their_mutants(
    name: str, project: ScriptedProject, client: Talker
) -> None:
    project.write("a.py", "1 1")
    project.write("b.py", "1")
    await Mtp().greet(client)
    await client.request("testing/discoverTests", {"runId": RUN})
    known = [node for node in nodes(client) if node["node-type"] == "action"]
    async with on_stdio(project, "--dialect", "mtp", "--adapter", "scripted") as (_, server):
        other = Talker(server.stdio())
        await Mtp().greet(other)
        for sent in ([known[1]], [{"uid": known[1]["uid"]}]):
            await other.request("testing/runTests", {"runId": RUN, name: sent})
            assert {node["uid"] for node in nodes(other)} == {"file:a.py", known[1]["uid"]}
        await other.request("testing/runTests", {"runId": RUN, name: []})
        assert nodes(other) == []
        await other.request("exit", {})
        assert await server.exited() == 0


async def test_a_node_whose_mutant_is_gone_is_skipped(project: ScriptedProject, client: Talker) -> None:
    project.write("a.py", "1")
    await Mtp().greet(client)
    await client.request("testing/discoverTests", {"runId": RUN})
    _, node = nodes(client)
    project.write("a.py", " 1")
    await client.request("testing/runTests", {"runId": RUN, "tests": [node]})
    (gone,) = nodes(client)
    assert (gone["uid"], gone["execution-state"]) == (node["uid"], "skipped")
    assert "discover again" in gone["error.message"]


@pytest.mark.parametrize("method", ["testing/discoverTests", "testing/runTests"])
async def test_a_group_without_mutants_is_skipped_with_the_reason(
    method: str, project: ScriptedProject, client: Talker
) -> None:
    project.write("a.py", "1")
    await Mtp().greet(client)
    unknown = {"uid": "file:b.py", "location.file": str(project.root / "b.py")}
    known = {"uid": "file:a.py", "location.file": str(project.root / "a.py")}
    await client.request(method, {"runId": RUN, "tests": [unknown, known]})
    *found, gone = nodes(client)
    assert {node["execution-state"] for node in found} <= {"discovered", "in-progress", "passed"}
    assert (gone["uid"], gone["node-type"], gone["execution-state"]) == ("file:b.py", "group", "skipped")
    assert gone["error.message"] == "this file has no mutants: discover again"


@pytest.mark.parametrize(
    "params",
    [
        None,
        [],
        {},
        {"runId": 1},
        {"runId": RUN, "tests": {}},
        {"runId": RUN, "tests": [1]},
        {"runId": RUN, "tests": [{}]},
        {"runId": RUN, "filter": "/**/a.py/*"},
        {"runId": RUN, "filter": "", "tests": []},
    ],
)
async def test_wrong_params_are_named(params: Any, client: Talker) -> None:
    await Mtp().greet(client)
    for method in ("testing/discoverTests", "testing/runTests"):
        code, message = await client.refused(method, params)
        assert (code, message.startswith("params")) == (-32602, True)


@pytest.mark.parametrize("params", [None, {}, {"clientInfo": {"name": "x"}}, {"clientInfo": [], "processId": 1}])
async def test_an_initialize_that_is_refused_may_come_again(params: Any, client: Talker) -> None:
    assert (await client.refused("initialize", params))[0] == -32602
    await Mtp().greet(client)


async def test_a_failure_is_logged_at_the_client_and_answered(project: ScriptedProject, client: Talker) -> None:
    project.write("a.py", "1")
    project.script(testing={"raises": ["ToolError", "no such thing; install it"]})
    await Mtp().greet(client)
    code, message = await client.refused("testing/runTests", {"runId": RUN})
    assert (code, "install it" in message) == (-32803, True)
    logged = await client.notification("client/log")
    assert (logged["level"], "install it" in logged["message"]) == ("Error", True)


async def test_exit_waits_for_what_runs_and_ends_the_connection(project: ScriptedProject, client: Talker) -> None:
    project.write("a.py", "1")
    project.script({**DIGIT, "after": "gate"})
    await Mtp().greet(client)
    running = await client.ask("testing/runTests", {"runId": RUN})
    await project.logged("waiting for gate")
    await client.send({"method": "exit", "params": {}})
    await asyncio.sleep(0.1)
    project.open("gate")
    assert await client.result(running) == {"attachments": []}
    with pytest.raises(EOFError):
        await client.receive()


async def test_a_client_that_does_not_listen_is_an_error(tmp_path: Path) -> None:
    there = ("--client-port", "1", "--client-host", "127.0.0.1")
    async with launched(tmp_path, "serve", "mtp", *there, forked=True) as server:
        assert await server.exited() != 0
    assert any("can't connect to the client at 127.0.0.1:1" in line for line in server.said)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["mtp"], "needs --client-port"),
        (["mtp", "--client-port", "1", "--dialect", "msp-alpha"], "no other"),
        (["mtp", "--client-port", "1", "--port", "2"], "serve socket"),
        (["stdio", "--client-port", "1"], "serve mtp"),
    ],
)
async def test_options_of_another_channel_are_usage_errors(arguments: list[str], problem: str, tmp_path: Path) -> None:
    async with launched(tmp_path, "serve", *arguments, forked=True) as server:
        assert await server.exited() == 2
    assert problem in " ".join(server.said)


async def test_what_is_gone_is_not_remembered(project: ScriptedProject, monkeypatch: pytest.MonkeyPatch) -> None:
    serving: list[MtpDialect] = []
    begin = MtpDialect.__init__

    def noted(self: MtpDialect, *arguments: Any) -> None:
        begin(self, *arguments)
        serving.append(self)

    monkeypatch.setattr(MtpDialect, "__init__", noted)
    async with greeted(Mtp(), project) as client:
        for number in range(4):
            project.write("a.py", f"{'0' * number} 1")
            project.write("b.py", "1")
            await client.request("testing/discoverTests", {"runId": RUN})
            await client.request("testing/runTests", {"runId": RUN})
        assert len(serving[0]._known) == 2
