"""MSP 0.0.1-alpha.1: a client written from its specification, with real mutmut; and what else its book says."""

from pathlib import Path
from typing import Any

import pytest
from support.dialects import MspAlpha, Talker
from support.node_clients import python_project, talked
from support.servers import DIGIT, ScriptedProject

IDENTITY = ("fileName", "id", "location", "mutatorName", "replacement")


def identities(mutants: list[dict[str, Any]]) -> list[Any]:
    return sorted(tuple(str(mutant[key]) for key in IDENTITY) for mutant in mutants)


@pytest.mark.parametrize("channel", ["stdio", "socket", "websocket"])
async def test_a_client_written_from_the_specification_is_served(channel: str, tmp_path: Path) -> None:
    facts = await talked("msp_alpha.mjs", python_project(tmp_path), channel, "--dialect", "msp-alpha")
    assert facts["codes"] == {"early": -32001, "tooNew": -5000, "twice": -32600, "unknown": -32601, "cancel": -32000}
    partial = {"partialResults": True}
    assert facts["initialized"] == {
        "serverInfo": {"version": "0.0.1-alpha.1"},
        "capabilities": {"instrumentationProvider": partial, "mutationTestProvider": partial},
    }
    pending, tested = facts["instrumented"], facts["mutated"]
    assert {mutant["status"] for mutant in pending} == {"Pending"}
    assert {mutant["fileName"] for mutant in pending} == {"src/calc/sums.py", "src/calc/odd.py"}
    assert identities(facts["streamedPending"]) == identities(pending)
    assert identities(tested) == identities(pending)
    assert {mutant["status"] for mutant in tested} == {"Killed", "Survived", "NoCoverage"}
    assert {mutant["fileName"] for mutant in facts["one"]} == {pending[0]["fileName"]}
    assert facts["none"] == []
    assert facts["code"] == (0 if channel == "stdio" else None)


@pytest.fixture
def speech() -> MspAlpha:
    return MspAlpha()


@pytest.mark.parametrize("method", ["instrument", "mutate", "configure", "$/x", "unheard of"])
async def test_a_request_before_initialize_is_refused(method: str, client: Talker) -> None:
    code, message = await client.refused(method, {})
    assert (code, "initialize" in message) == (-32001, True)


async def test_a_notification_before_initialize_is_dropped(client: Talker) -> None:
    await client.send({"method": "mutate", "params": {}}, {"method": "progress"})
    await MspAlpha().greet(client)
    assert client.notified == []


@pytest.mark.parametrize(
    ("params", "code"),
    [
        (None, -32602),
        ({}, -32602),
        ([], -32602),
        ({"clientInfo": {}}, -32602),
        ({"clientInfo": {"version": 1}}, -32602),
        ({"clientInfo": {"version": "1.0"}}, -32602),
        ({"clientInfo": {"version": "01.0.0"}}, -32602),
        ({"clientInfo": {"version": "1.0.0"}}, -5000),
        ({"clientInfo": {"version": "10.2.3-beta.1+build"}}, -5000),
        ({"clientInfo": {"version": "0.1.0"}, "configUri": "setup.cfg"}, -32602),
        ({"clientInfo": {"version": "0.1.0"}, "configUri": "http://example.org/x"}, -32602),
        ({"clientInfo": {"version": "0.1.0"}, "configUri": "file:///of/another/project.toml"}, -32803),
    ],
)
async def test_an_initialize_that_is_refused_may_come_again(params: Any, code: int, client: Talker) -> None:
    assert (await client.refused("initialize", params))[0] == code
    assert (await client.refused("mutate", {}))[0] == -32001
    await MspAlpha().greet(client)
    assert await client.request("mutate", {}) == []


async def test_the_second_initialize_is_refused(client: Talker) -> None:
    await MspAlpha().greet(client)
    assert (await client.refused("initialize", {"clientInfo": {"version": "0.0.1"}}))[0] == -32600


async def test_a_config_uri_is_the_configuration(project: ScriptedProject, client: Talker) -> None:
    project.write("a.py", "1 one")
    other = project.root / project.script({"mutator": "word", "find": "one", "replacement": "two"}, name="a b.json")
    await client.request("initialize", {"clientInfo": {"version": "0.0.1"}, "configUri": other.as_uri()})
    assert [mutant["mutatorName"] for mutant in await client.request("instrument", {})] == ["word"]


@pytest.mark.parametrize(
    ("globs", "files"),
    [
        (None, ["a.py", "src/[id].py", "src/b.py", "src/deep/c.py"]),
        ([], []),
        (["**"], ["a.py", "src/[id].py", "src/b.py", "src/deep/c.py"]),
        (["*.py"], ["a.py"]),
        (["src/**"], ["src/[id].py", "src/b.py", "src/deep/c.py"]),
        (["src/*.py"], ["src/[id].py", "src/b.py"]),
        (["src/[id].py"], ["src/[id].py"]),
        (["src"], ["src/[id].py", "src/b.py", "src/deep/c.py"]),
        (["{a,src/b}.py", "**/c.*", "nowhere/**", "../**"], ["a.py", "src/b.py", "src/deep/c.py"]),
    ],
)
async def test_globs_are_relative_to_the_root_and_several_are_a_union(
    globs: list[str] | None, files: list[str], project: ScriptedProject, client: Talker
) -> None:
    for path in ("a.py", "src/[id].py", "src/b.py", "src/deep/c.py"):
        project.write(path, "1")
    await MspAlpha().greet(client)
    params = {} if globs is None else {"globPatterns": globs}
    for method in ("instrument", "mutate"):
        assert sorted(mutant["fileName"] for mutant in await client.request(method, params)) == files


@pytest.mark.parametrize(
    "params",
    [[], {"globPatterns": "a.py"}, {"globPatterns": [1]}, {"globPatterns": ["{1..5000}"]}],
)
async def test_wrong_params_are_named(params: Any, client: Talker) -> None:
    await MspAlpha().greet(client)
    code, message = await client.refused("mutate", params)
    assert (code, message.startswith("params")) == (-32602, True)


@pytest.mark.parametrize(("token", "what"), [({}, "an object"), (True, "true"), (1.5, "1.5"), ([], "an array")])
async def test_a_token_is_an_integer_or_a_string(token: Any, what: str, client: Talker) -> None:
    await MspAlpha().greet(client)
    text = f"params.partialResultToken: must be an integer or a string, not {what}"
    assert await client.refused("mutate", {"partialResultToken": token}) == (-32602, text)


async def test_a_result_is_reported_as_soon_as_it_is_known(project: ScriptedProject, client: Talker) -> None:
    project.write("a.py", "1 one")
    project.script(DIGIT, {"mutator": "word", "find": "one", "replacement": "two", "after": "gate"})
    await MspAlpha().greet(client)
    id = await client.ask("mutate", {"partialResultToken": "token"})
    first = await client.notification("progress")
    assert (first["token"], [mutant["mutatorName"] for mutant in first["value"]]) == ("token", ["digit"])
    project.open("gate")
    assert await client.result(id) == []
    assert len(MspAlpha().tested(client.notified)) == 1


async def test_a_tool_that_fails_is_an_error_that_says_why(project: ScriptedProject, client: Talker) -> None:
    project.write("a.py", "1")
    project.script(testing={"raises": ["ToolError", "no such thing; install it"]})
    await MspAlpha().greet(client)
    code, message = await client.refused("mutate", {})
    assert (code, "install it" in message) == (-32803, True)
