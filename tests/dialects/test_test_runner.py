"""The JSON-RPC test runner protocol: a client written from its RFC, with real mutmut; and what else its book says."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from support.dialects import Talker, TestRunner
from support.node_clients import python_project, talked
from support.servers import DIGIT, ScriptedProject

from msp_bridge.dialects.test_runner_tree import ClientTree, File
from msp_bridge.model import Location, Mutant, Position

DONE = {"success": True}
ALL_OF_A_RUN = [None, "Queued", "Running"]


@pytest.fixture
def speech() -> TestRunner:
    return TestRunner()


def statuses(client: Talker, id: str) -> list[str | None]:
    """Of a node, in order; what the client has received so far is dropped."""
    received, client.notified = client.notified, []
    return [params["status"] for method, params in received if method == "updateStatus" and params["id"] == id]


def nodes(client: Talker) -> dict[str, dict[str, Any]]:
    """By id, as they were registered so far."""
    return {params["test"]["id"]: params["test"] for method, params in client.notified if method == "registerTest"}


@pytest.mark.parametrize("channel", ["stdio", "socket"])
async def test_a_client_written_from_the_rfc_is_served(channel: str, tmp_path: Path) -> None:
    root = python_project(tmp_path)
    facts = await talked("test_runner.mjs", root, channel, "--dialect", "test-runner")
    assert (facts["first"], facts["again"], facts["same"]) == (DONE, DONE, True)
    assert facts["codes"] == {"cancel": -32800, "duplicate": -32001, "debug": -32601, "unknown": -32602}
    registered = facts["discovered"]["nodes"]
    assert [node["type"] for node in registered[:3]] == ["solution", "project", "namespace"]
    files = {node["displayName"]: node for node in registered if node["type"] == "namespace"}
    assert files.keys() == {"src/calc/sums.py", "src/calc/odd.py"}
    assert files["src/calc/sums.py"]["filePath"] == str(root / "src/calc/sums.py")
    assert [status for _, status in facts["discovered"]["history"]] == [None, "Discovering", "Idle"]
    assert facts["run"]["answer"] == DONE
    assert facts["run"]["path"] == [*ALL_OF_A_RUN, "Failed"]
    below = {id: status for id, status in facts["run"]["below"].items() if id.isdigit()}
    assert Counter(below.values()).keys() == {"Passed", "Failed"}
    assert facts["details"]["status"] in ("Survived", "NoCoverage")
    assert facts["details"]["diff"].startswith("--- a/src/calc/")
    assert facts["one"]["path"] == [*ALL_OF_A_RUN, "Failed"]
    assert (facts["one"]["answer"], facts["parent"]) == (DONE, "Failed")
    assert facts["invalidated"]["path"] == [None, "Discovering", "Passed"]
    assert facts["project"]["path"] == [*ALL_OF_A_RUN, "Failed"]
    assert facts["afterwards"] == [*ALL_OF_A_RUN, "Cancelling", "Cancelled"]
    assert facts["child"]["answer"] == DONE
    assert facts["code"] == (0 if channel == "stdio" else None)


@pytest.mark.parametrize(
    ("became", "status"),
    [
        ("Killed", "Passed"),
        ("Timeout", "Passed"),
        ("Survived", "Failed"),
        ("NoCoverage", "Failed"),
        ("CompileError", "Failed"),
        ("RuntimeError", "Failed"),
        ("Ignored", "Skipped"),
    ],
)
async def test_a_mutant_passes_when_the_tests_notice_it(
    became: str, status: str, project: ScriptedProject, client: Talker
) -> None:
    project.write("a.py", "1")
    project.script({**DIGIT, "status": became})
    await TestRunner().greet(client)
    (mutant,) = [id for id in nodes(client) if id.isdigit()]
    for node in (mutant, "file:a.py", "project:scripted", "solution"):
        assert await client.request("testrunner/run", {"id": node}) == DONE
        assert statuses(client, node) == [*ALL_OF_A_RUN, status]


async def test_parents_say_what_is_known_of_all_below_them(project: ScriptedProject, client: Talker) -> None:
    project.script({**DIGIT, "status": "Survived"}, {"mutator": "word", "find": "one", "replacement": "two"})
    project.write("a.py", "1 one")
    project.write("b.py", "one")
    await TestRunner().greet(client)
    word = next(id for id, node in nodes(client).items() if node["displayName"].startswith("word (1:3)"))
    digit = next(id for id, node in nodes(client).items() if node["displayName"].startswith("digit"))
    for node, file, solution in (
        (word, "Passed", "Passed"),
        (digit, "Failed", "Failed"),
        (word, "Failed", "Failed"),
        ("file:b.py", None, "Failed"),
    ):
        await client.request("testrunner/run", {"id": node})
        notified = client.notified.copy()
        assert statuses(client, "solution")[-1] == solution
        client.notified = notified
        assert (statuses(client, "file:a.py") or [None])[-1] == file


async def test_an_overlapping_operation_leaves_a_node_running_until_both_have_ended(
    project: ScriptedProject, client: Talker
) -> None:
    project.write("a.py", "1 7")
    project.script(DIGIT, {"mutator": "gated", "find": "7", "replacement": "8", "after": "gate"})
    await TestRunner().greet(client)
    digit = next(id for id, node in nodes(client).items() if node["displayName"].startswith("digit"))
    whole = await client.ask("testrunner/run", {"id": "file:a.py"})
    await project.logged("waiting for gate")
    assert await client.request("testrunner/run", {"id": digit}) == DONE
    assert statuses(client, "file:a.py") == ALL_OF_A_RUN
    project.open("gate")
    assert await client.result(whole) == DONE
    assert statuses(client, "file:a.py") == ["Passed"]


async def test_a_mutant_that_is_gone_is_skipped_and_a_new_one_is_registered(
    project: ScriptedProject, client: Talker
) -> None:
    project.write("a.py", "1")
    await TestRunner().greet(client)
    (old,) = [id for id in nodes(client) if id.isdigit()]
    client.notified.clear()
    project.write("a.py", " 1")
    assert await client.request("testrunner/run", {"id": "file:a.py"}) == DONE
    (new,) = [id for id in nodes(client) if id.isdigit()]
    notified = client.notified.copy()
    assert statuses(client, old) == [*ALL_OF_A_RUN, "Skipped"]
    client.notified = notified
    assert statuses(client, new) == ["Passed"]
    assert (await client.refused("testrunner/run", {"id": old}))[0] == -32602


async def test_an_invalidation_finds_new_files_and_forgets_what_is_gone(
    project: ScriptedProject, client: Talker
) -> None:
    project.write("a.py", "1")
    await TestRunner().greet(client)
    (old,) = [id for id in nodes(client) if id.isdigit()]
    await client.request("testrunner/run", {"id": "solution"})
    client.notified.clear()
    project.write("a.py", "one")
    project.write("b.py", "1")
    assert await client.request("testrunner/invalidate", {"id": "project:scripted"}) == DONE
    assert "file:b.py" in nodes(client)
    assert statuses(client, old) == [None, "Skipped"]


@pytest.mark.parametrize(("method", "node"), [("run", "file:a.py"), ("run", "solution"), ("invalidate", "file:a.py")])
async def test_a_file_that_is_deleted_is_skipped_with_its_mutants_and_forgotten(
    method: str, node: str, project: ScriptedProject, client: Talker
) -> None:
    project.write("a.py", "1")
    project.write("b.py", "1")
    await TestRunner().greet(client)
    (project.root / "a.py").unlink()
    client.notified.clear()
    assert await client.request(f"testrunner/{method}", {"id": node}) == DONE
    assert statuses(client, "file:a.py")[-1] == "Skipped"
    assert (await client.refused("testrunner/run", {"id": "file:a.py"}))[0] == -32602
    project.write("a.py", "1")
    assert await client.request("testrunner/invalidate", {"id": "project:scripted"}) == DONE
    assert "file:a.py" in nodes(client)


async def test_a_failure_is_a_status_before_it_is_an_error(project: ScriptedProject, client: Talker) -> None:
    project.write("a.py", "1")
    await TestRunner().greet(client)
    project.script(testing={"raises": ["ToolError", "no such thing; install it"]})
    client.notified.clear()
    code, message = await client.refused("testrunner/run", {"id": "file:a.py"})
    assert (code, "install it" in message) == (-32803, True)
    assert statuses(client, "file:a.py") == [*ALL_OF_A_RUN, "Failed"]
    project.script()
    assert await client.request("testrunner/run", {"id": "file:a.py"}) == DONE


@pytest.mark.parametrize("method", ["run", "invalidate", "details"])
@pytest.mark.parametrize("params", [None, [], {}, {"id": 1}, {"id": "nowhere"}, {"id": "file:nowhere.py"}])
async def test_what_is_no_node_is_refused(method: str, params: Any, client: Talker) -> None:
    code, message = await client.refused(f"testrunner/{method}", params)
    assert (code, message.startswith("params")) == (-32602, True)


async def test_overlapping_operations_may_both_miss_a_mutant_that_is_gone(
    project: ScriptedProject, client: Talker
) -> None:
    project.write("a.py", "1 7")
    project.script(DIGIT, {"mutator": "gated", "find": "7", "replacement": "8", "after": "gate"})
    await TestRunner().greet(client)
    project.write("a.py", " 1 7")
    runs = [await client.ask("testrunner/run", {"id": id}) for id in ("file:a.py", "solution")]
    await project.logged("waiting for gate")
    project.open("gate")
    assert [await client.result(run) for run in runs] == [DONE, DONE]


def test_a_file_that_two_operations_find_has_the_mutants_of_both() -> None:
    tree = ClientTree()
    location = Location(Position(1, 1), Position(1, 2))
    mutants = [Mutant("a.py", "digit", location, replacement) for replacement in "23"]
    for mutant in mutants:
        tree.add(File("a.py", "project:scripted"), mutant)
    assert tree.mutants("file:a.py") == [mutant.id for mutant in mutants]
    tree.remove(mutants[0].id)
    assert tree.mutants("solution") == [mutants[1].id]


async def test_a_cancel_amid_statuses_that_nobody_reads_is_answered(project: ScriptedProject, client: Talker) -> None:
    project.write("many.py", "1\n" * 3000)
    await TestRunner().greet(client)
    id = await client.ask("testrunner/run", {"id": "solution"})
    await client.cancel(id)
    assert (await client.answer(id))["error"]["code"] == -32800
