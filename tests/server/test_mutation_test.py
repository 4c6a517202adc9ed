"""Transcripts of `mutationTest`, over each transport."""

import json
from collections import Counter
from typing import Any

from support.msp_client import Client
from support.servers import DIGIT, ScriptedProject, Serve, mutants_of, place, transports

DONE: dict[str, Any] = {"files": {}}
WORD = {"mutator": "word", "find": "one", "replacement": "two"}


async def reported(client: Client, params: Any = None) -> list[tuple[str, dict[str, Any]]]:
    """Everything that a whole `mutationTest` reports."""
    client.progress.clear()
    assert await client.request("mutationTest", params) == DONE
    return client.take_results()


@transports
async def test_every_result_comes_before_the_final_answer_which_is_empty(
    project: ScriptedProject, client: Client
) -> None:
    project.script({**DIGIT, "status": "Survived"}, WORD)
    project.write("a.py", "1 one 1")
    project.write("sub/b.py", "one")
    discovered = mutants_of(await client.request("discover"))
    id = await client.ask("mutationTest")
    results = []
    while "method" in (message := await client.receive()):
        assert set(message) == {"jsonrpc", "method", "params"}
        assert message["method"] == "reportMutationTestProgress"
        results += mutants_of(message["params"])
    assert message == {"jsonrpc": "2.0", "id": id, "result": DONE}
    status = {"digit": "Survived", "word": "Killed"}
    assert results == [(path, mutant | {"status": status[mutant["mutatorName"]]}) for path, mutant in discovered]
    await client.request("configure")
    assert client.progress == [], "nothing comes after the final answer"


@transports
async def test_a_result_goes_out_as_soon_as_it_is_known(project: ScriptedProject, client: Client) -> None:
    project.script(DIGIT, {**WORD, "after": "gate"})
    project.write("a.py", "1 one")
    id = await client.ask("mutationTest")
    ((_, first),) = mutants_of(await client.some_progress())
    assert first["mutatorName"] == "digit"
    project.open("gate")
    assert await client.result(id) == DONE
    assert [mutant["mutatorName"] for _, mutant in client.take_results()] == ["word"]


async def test_each_mutant_is_reported_exactly_once_whatever_the_adapter_does(
    project: ScriptedProject, client: Client
) -> None:
    faults = {"twice": 2, "never": 0, "once": 1}
    project.script(
        *({"mutator": name, "find": name, "replacement": "", "times": times} for name, times in faults.items()),
        testing={"invents": True},
    )
    project.write("a.py", "once never twice")
    project.write("b.py", "twice twice never once")
    results = await reported(client)
    assert Counter((path, mutant["mutatorName"]) for path, mutant in results) == {
        ("a.py", "once"): 1,
        ("a.py", "never"): 1,
        ("a.py", "twice"): 1,
        ("b.py", "once"): 1,
        ("b.py", "never"): 1,
        ("b.py", "twice"): 2,
    }
    assert len({mutant["id"] for _, mutant in results}) == 7
    for _, mutant in results:
        if mutant["mutatorName"] == "never":
            assert mutant["status"] == "Ignored"
            assert mutant["statusReason"].startswith("not tested: scripted gave no result for it")
        else:
            assert mutant["status"] == "Killed"


async def test_files_and_ranges_are_reported_and_nothing_else(project: ScriptedProject, client: Client) -> None:
    project.write("a.py", "1 1")
    project.write("sub/b.py", "1")
    project.write("sub/c.py", "1")
    files = [{"path": "sub"}, {"path": str(project.root / "a.py"), "range": place(1, 3, 1, 4)}, {"path": "gone.py"}]
    results = await reported(client, {"files": files})
    assert [(path, mutant["location"]["start"]["column"]) for path, mutant in results] == [
        ("a.py", 3),
        ("sub/b.py", 1),
        ("sub/c.py", 1),
    ]


async def test_mutants_of_an_earlier_server_are_known_by_their_content(project: ScriptedProject, serve: Serve) -> None:
    project.script(DIGIT, {**DIGIT, "replacement": "3"}, {**DIGIT, "mutator": "number"})
    project.write("sub/a.py", "1 1")
    async with serve(project) as client:
        answer = await client.request("discover")
    chosen = mutants_of(answer)[2]
    wanted = {**chosen[1], "id": "of another server", "status": "Survived", "description": "changed"}
    async with serve(project) as client:
        for path in ("sub/a.py", str(project.root / "sub/a.py"), "./sub/a.py"):
            results = await reported(client, {"mutants": {path: {"mutants": [wanted]}}})
            assert results == [("sub/a.py", chosen[1] | {"status": "Killed"})]
        twice = {"mutants": {"sub/a.py": {"mutants": [wanted, wanted]}}}
        assert len(await reported(client, twice)) == 1
        del wanted["replacement"]
        assert len(await reported(client, {"mutants": {"sub/a.py": {"mutants": [wanted]}}})) == 2
        assert len(await reported(client, {"mutants": answer["files"]})) == 6


async def test_mutants_that_no_longer_exist_are_left_out(project: ScriptedProject, client: Client) -> None:
    project.write("a.py", "1\n1\n")
    project.write("gone.py", "1")
    answer = await client.request("discover")
    project.write("a.py", "1\n 1\n")
    (project.root / "gone.py").unlink()
    results = await reported(client, {"mutants": answer["files"]})
    assert [(path, mutant["id"]) for path, mutant in results] == [("a.py", answer["files"]["a.py"]["mutants"][0]["id"])]
    for nobody in ({"mutatorName": "other"}, {"replacement": "9"}, {"location": place(1, 1, 2, 2)}):
        changed = answer["files"]["a.py"]["mutants"][0] | nobody
        assert await reported(client, {"mutants": {"a.py": {"mutants": [changed]}}}) == []


async def test_nothing_selected_is_answered_at_once(project: ScriptedProject, client: Client) -> None:
    project.write("a.py", "1")
    project.script(discovery={"after": "never"}, testing={"after": "never"})
    selections: list[dict[str, Any]] = [
        {"mutants": {}},
        {"files": []},
        {"mutants": {"a.py": {"mutants": []}}},
        {"mutants": {}, "files": [{"path": "a.py"}]},
    ]
    for nothing in selections:
        assert await reported(client, nothing) == []
    assert project.log == []


async def test_every_status_reaches_the_client_by_its_name(project: ScriptedProject, client: Client) -> None:
    names = ["Killed", "Survived", "NoCoverage", "Timeout", "CompileError", "RuntimeError", "Ignored", "Pending"]
    project.script(*({"mutator": name, "find": name, "replacement": "", "status": name} for name in names))
    project.write("a.py", " ".join(names))
    assert {mutant["mutatorName"]: mutant["status"] for _, mutant in await reported(client)} == dict(
        zip(names, names, strict=True)
    )


async def test_results_before_a_failure_are_kept_and_the_failure_is_the_answer(
    project: ScriptedProject, client: Client
) -> None:
    project.script(DIGIT, {**WORD, "status": "NoSuchStatus"})
    project.write("a.py", "1 one")
    answer = await client.answer(await client.ask("mutationTest"))
    assert answer["error"]["code"] == -32603
    assert [mutant["mutatorName"] for _, mutant in client.take_results()] == ["digit"]


@transports
async def test_a_tool_that_runs_during_a_test_has_ended_with_the_answer(
    project: ScriptedProject, client: Client
) -> None:
    project.script(tool="daemon")
    project.write("a.py", "1")
    assert len(await reported(client)) == 1
    assert project.alive() == []


@transports
async def test_all_projects_of_a_tree_answer_with_its_paths_and_a_broken_one_spoils_none(
    project: ScriptedProject, client: Client
) -> None:
    for folder in ("", "web/", "svc/"):
        project.write(f"{folder}a.py", "1")
    script = {"mutations": [{**DIGIT, "status": "Survived"}], "events": str(project.events)}
    project.write("web/scripted.json", json.dumps(script))
    project.write("svc/scripted.json", json.dumps({**script, "discovery": {"raises": ["ToolError", "no such thing"]}}))
    found = await client.request("discover")
    assert found["files"].keys() == {"a.py", "web/a.py"}
    results = {path: mutant["status"] for path, mutant in await reported(client)}
    assert results == {"a.py": "Killed", "web/a.py": "Survived"}
    assert sorted(path for path, _ in await reported(client, {"mutants": found["files"]})) == ["a.py", "web/a.py"]
