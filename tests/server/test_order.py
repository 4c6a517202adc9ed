"""Several requests at once: the newest goes first, and none is lost."""

from collections import Counter
from typing import Any

import pytest
from support.msp_client import Client
from support.servers import DIGIT, ScriptedProject, mutants_of, on_socket, transports

DONE: dict[str, Any] = {"files": {}}
GATED = {"mutator": "gated", "find": "g", "replacement": "h"}


@transports
async def test_the_newest_request_goes_first_and_the_older_go_on_afterwards(
    project: ScriptedProject, client: Client
) -> None:
    gated = [
        {"mutator": name, "find": name, "replacement": "", "after": f"gate of {name}"} for name in ("old", "mid", "new")
    ]
    project.script(*gated, DIGIT)
    ids = {}
    for name in ("old", "mid", "new"):
        project.write(f"{name}.py", f"{name} 1 1 1")
        ids[name] = await client.ask("mutationTest", {"files": [{"path": f"{name}.py"}]})
        await project.logged(f"waiting for gate of {name}")
    for name in ("old", "mid"):  # the mutant that was being tested is finished, but no other is begun
        project.open(f"gate of {name}")
        ((path, _),) = mutants_of(await client.some_progress())
        assert path == f"{name}.py"
    await client.request("discover")
    assert [line for line in project.log if line.startswith("started")] == [f"started {n}.py {n} 0" for n in ids]
    project.open("gate of new")
    for name in ("new", "mid", "old"):
        assert await client.result(ids[name]) == DONE
    digits = [line.split()[1] for line in project.log if line.startswith("started") and " digit " in line]
    assert digits == ["new.py"] * 3 + ["mid.py"] * 3 + ["old.py"] * 3
    results = Counter(path for path, _ in client.take_results())
    assert results == {"new.py": 4, "mid.py": 3, "old.py": 3}


async def test_requests_are_answered_while_mutants_are_tested(project: ScriptedProject, client: Client) -> None:
    project.script({**DIGIT, "after": "gate"})
    project.write("a.py", "1")
    testing = await client.ask("mutationTest")
    await project.logged("waiting for gate")
    assert len(mutants_of(await client.request("discover"))) == 1
    assert await client.request("configure") == {"version": "0.4.0"}
    assert await client.request("mutationTest", {"files": []}) == DONE
    assert client.progress == []
    project.open("gate")
    assert await client.result(testing) == DONE
    assert len(client.take_results()) == 1


@pytest.mark.parametrize("end", ["cancelled", "failed"])
async def test_an_older_request_goes_on_when_the_newer_one_ends_badly(
    end: str, project: ScriptedProject, client: Client
) -> None:
    project.script({**GATED, "after": "old"}, DIGIT)
    project.write("a.py", "g 1 1")
    old = await client.ask("mutationTest")
    await project.logged("waiting for old")
    project.script(DIGIT, testing={"after": "new", "raises": ["ToolError", "it broke"]})
    new = await client.ask("mutationTest")
    await project.logged("waiting for new")
    project.open("old")
    await client.some_progress()
    if end == "cancelled":
        await client.cancel(new)
    else:
        project.open("new")
    assert (await client.answer(new))["error"]["code"] == (-32800 if end == "cancelled" else -32803)
    assert await client.result(old) == DONE
    assert len(client.take_results()) == 2


async def test_a_cancelled_request_that_waits_for_a_newer_one_is_answered(
    project: ScriptedProject, client: Client
) -> None:
    project.script({**GATED, "after": "gate"}, DIGIT)
    project.write("a.py", "1")
    project.write("b.py", "g")
    new_first = {"files": [{"path": "b.py"}]}
    project.open("gate")
    assert await client.request("mutationTest", new_first) == DONE
    (project.events / "gate").unlink()
    old = await client.ask("mutationTest", new_first)
    await project.logged("waiting for gate")
    new = await client.ask("mutationTest", new_first)
    middle = await client.ask("mutationTest", {"files": [{"path": "a.py"}]})
    assert await client.result(middle) == DONE
    await client.cancelled(old)
    project.open("gate")
    assert await client.result(new) == DONE


async def test_one_clients_newer_request_goes_before_anothers_older_one(project: ScriptedProject) -> None:
    async with on_socket(project) as (client, server):
        other = await server.connect()
        project.script(
            {**GATED, "after": "old"}, {"mutator": "new", "find": "n", "replacement": "m", "after": "new"}, DIGIT
        )
        project.write("a.py", "g 1")
        project.write("b.py", "n 1")
        old = await client.ask("mutationTest", {"files": [{"path": "a.py"}]})
        await project.logged("waiting for old")
        new = await other.ask("mutationTest", {"files": [{"path": "b.py"}]})
        await project.logged("waiting for new")
        project.open("old")
        assert len(mutants_of(await client.some_progress())) == 1
        project.open("new")
        assert await other.result(new) == DONE
        assert await client.result(old) == DONE
        assert [path for path, _ in other.take_results()] == ["b.py", "b.py"], "progress goes to its own client alone"
        assert [path for path, _ in client.take_results()] == ["a.py"]
        order = [line for line in project.log if line.startswith("started") and " digit " in line]
        assert order == ["started b.py digit 2", "started a.py digit 2"]
        await server.terminated()


async def test_a_request_behind_a_configure_gets_what_that_has_set(project: ScriptedProject, client: Client) -> None:
    project.write("a.py", "1 one")
    word = {"mutator": "word", "find": "one", "replacement": "two"}
    project.script(word, name="other.json", detected="gate")
    await client.ask("configure", {"configFilePath": "other.json"})
    found = await client.ask("discover")
    tested = await client.ask("mutationTest")
    back = await client.ask("configure", {})
    last = await client.ask("discover")
    await project.logged("detecting until gate")
    project.open("gate")
    assert [mutant["mutatorName"] for _, mutant in mutants_of(await client.result(found))] == ["word"]
    assert await client.result(tested) == DONE
    assert [mutant["mutatorName"] for _, mutant in client.take_results()] == ["word"]
    assert await client.result(back) == {"version": "0.4.0"}
    assert [mutant["mutatorName"] for _, mutant in mutants_of(await client.result(last))] == ["digit"]


async def test_a_configure_behind_a_request_does_not_overtake_it(project: ScriptedProject, client: Client) -> None:
    project.write("a.py", "1 one")
    project.script({"mutator": "word", "find": "one", "replacement": "two"}, name="other.json")
    await client.request("configure", {"configFilePath": "other.json"})
    for _ in range(10):
        await client.request("configure", {})
        found, tested = await client.ask("discover"), await client.ask("mutationTest")
        configured = await client.ask("configure", {"configFilePath": "other.json"})
        assert [mutant["mutatorName"] for _, mutant in mutants_of(await client.result(found))] == ["digit"]
        assert await client.result(tested) == DONE
        assert [mutant["mutatorName"] for _, mutant in client.take_results()] == ["digit"]
        await client.result(configured)


async def test_a_request_behind_a_configure_can_be_cancelled_the_configure_not(
    project: ScriptedProject,
) -> None:
    async with on_socket(project) as (client, server):
        project.script(detected="gate")
        configuring = await client.ask("configure")
        behind = await client.ask("discover")
        await project.logged("detecting until gate")
        await client.cancel(configuring)
        await client.cancelled(behind)
        project.open("gate")
        assert await client.result(configuring) == {"version": "0.4.0"}
        await server.terminated()


async def test_a_client_that_looks_for_projects_keeps_no_other_waiting(project: ScriptedProject) -> None:
    project.write("a.py", "1")
    async with on_socket(project) as (client, server):
        assert len(mutants_of(await client.request("discover"))) == 1
        other, third = await server.connect(), await server.connect()
        project.script(detected="gate")
        looking = await other.ask("configure")
        await project.logged("detecting until gate")
        assert await client.request("mutationTest") == DONE
        assert len(mutants_of(await third.request("discover"))) == 1
        project.open("gate")
        assert await other.result(looking) == {"version": "0.4.0"}
        await server.terminated()
