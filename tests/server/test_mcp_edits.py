"""`serve mcp` while files are edited: which text a mutant is shown in, which results count, what a call selects."""

import asyncio
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from support.dialects import Mcp, Talker, agent_on, called, miscalled
from support.servers import DIGIT, LOOK, ScriptedProject

from msp_bridge.phases import BASELINE

GATED = {"mutator": "gated", "find": "7", "replacement": "8", "after": "gate"}


@pytest.fixture
async def client(project: ScriptedProject) -> AsyncIterator[Talker]:
    """An agent, on a project with two files and a file of tests."""
    project.write("a.py", "a = 1\n")
    project.write("b.py", "b = 1\n")
    project.write("test_a.py", "import a\n")
    async with agent_on(project) as client:
        yield client


async def test_a_diff_is_of_the_text_that_the_mutant_was_found_in(project: ScriptedProject, client: Talker) -> None:
    (mutant,) = (await called(client, "list_mutants", paths=["a.py"]))["mutants"]
    shown = await called(client, "show_mutant", id=mutant["id"])
    assert "-a = 1\n+a = 2\n" in shown["diff"]
    assert not shown["mutant"]["outdated"]
    for text in ("b = [1]\na = 1\n", "", None):
        project.write("a.py", text or "")
        if text is None:
            (project.root / "a.py").unlink()
        outdated = await called(client, "show_mutant", id=mutant["id"])
        assert outdated["diff"] == shown["diff"]
        assert outdated["mutant"]["outdated"]
        assert outdated["why"].startswith("Outdated: a.py was edited since")
        assert "call list_mutants" in await miscalled(client, "ignore_mutant", id=mutant["id"], reason="why not")
    project.write("a.py", "a = 1\n")
    assert await called(client, "show_mutant", id=mutant["id"]) == shown


@pytest.mark.parametrize("edited", ["a.py", "b.py", "test_a.py", "data.txt"])
async def test_what_is_edited_during_a_test_is_untested_and_named(
    edited: str, project: ScriptedProject, client: Talker
) -> None:
    project.write("a.py", "a = 1 + 7\n")
    project.script(DIGIT, GATED)
    waiting = await client.ask("tools/call", {"name": "test_mutants", "arguments": {}})
    await project.logged("waiting for gate")
    file = project.root / edited
    text = file.read_text() if file.exists() else ""
    project.write(edited, f"\n{text}")
    project.open("gate")
    report = (await client.result(waiting))["structuredContent"]
    assert "Ignored" not in report["counts"]
    assert (report["selected"], report["tested"] + report["untested"]) == (3, 3)
    assert [edited in problem for problem in report["problems"]] == [True]
    assert report["tested"] == (3 if edited == "data.txt" else 0)
    survivors = await called(client, "survivors")
    assert (survivors["tested"], survivors["outdated"]) == (0, report["tested"])
    project.write(edited, text)  # what came meanwhile is no result about this text
    assert (await called(client, "survivors"))["tested"] == 0
    again = await called(client, "test_mutants")
    assert (again["tested"], again["untested"], again["outdated"], again["problems"]) == (3, 0, 0, [])


async def test_results_that_came_before_an_edit_are_about_the_files_before(
    project: ScriptedProject, client: Talker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("msp_bridge.mcp.testing.LOOK_S", 0)
    monkeypatch.setattr("msp_bridge.mcp.testing.LOOKS", 0)
    project.write("c.py", "c = 7\n")
    project.script(DIGIT, GATED)
    waiting = await client.ask("tools/call", {"name": "test_mutants", "arguments": {}})
    await project.logged("waiting for gate")
    while (await called(client, "survivors"))["tested"] < 2:
        await asyncio.sleep(LOOK)
    project.write("test_a.py", "import b\n")
    project.open("gate")
    report = (await client.result(waiting))["structuredContent"]
    assert (report["tested"], report["untested"]) == (2, 1)
    assert "test_a.py; the test ended there, and its results are about the files before" in report["problems"][0]
    survivors = await called(client, "survivors")
    assert (survivors["tested"], survivors["outdated"], survivors["edited"]) == (0, 2, ["test_a.py"])


async def test_a_change_of_tests_outdates_what_they_have_shown(project: ScriptedProject, client: Talker) -> None:
    project.script({**DIGIT, "status": "Survived"})
    before = await called(client, "test_mutants")
    (id, _) = (survivor["id"] for survivor in before["survivors"])
    project.write("test_a.py", "def test_a():\n    pass\n")
    survivors = await called(client, "survivors")
    assert (survivors["tested"], survivors["outdated"], survivors["edited"]) == (0, 2, ["test_a.py"])
    shown = await called(client, "show_mutant", id=id)
    assert shown["why"].startswith("Outdated: test_a.py was edited since, and the status may be another by now")
    assert "-a = 1\n+a = 2\n" in shown["diff"]
    assert [mutant["outdated"] for mutant in (await called(client, "list_mutants"))["mutants"]] == [True, True]
    again = await called(client, "test_mutants", ids=[id])
    assert (again["tested"], again["untested"], again["outdated"]) == (1, 0, 1)
    project.write("test_a.py", "import a\n")
    assert (await called(client, "survivors"))["tested"] == 1


async def test_a_change_of_tests_alone_says_what_to_call_instead(project: ScriptedProject, client: Talker) -> None:
    git = "git init -q; git add .; git -c user.name=a -c user.email=a@b commit -qm a"
    subprocess.run(git, shell=True, cwd=project.root, check=True, timeout=60)
    assert (await called(client, "test_mutants", since="HEAD"))["problems"] == ["nothing has changed since HEAD"]
    project.write("test_a.py", "import b\n")
    (problem,) = (await called(client, "test_mutants", since="HEAD"))["problems"]
    assert "(test_a.py): after a change of tests, call test_mutants with the paths of the code" in problem
    project.write("a.py", "a = 1 + 1\n")
    assert (await called(client, "test_mutants", since="HEAD"))["tested"] == 2


@pytest.mark.parametrize(
    ("tool", "arguments", "advice"),
    [
        ("test_mutants", {"ids": []}, "ids is empty, which selects nothing"),
        (
            "test_mutants",
            {"paths": []},
            "paths is empty, which selects nothing.\nWhat to do: leave it out, or name some",
        ),
        ("test_mutants", {"paths": ["a.py:4000"]}, "a.py:4000: the file has 2 lines"),
        ("test_mutants", {"paths": ["*.py"]}, "no file or directory *.py.\nWhat to do: patterns are not taken"),
        ("test_mutants", {"ids": ["12", "13"]}, "no mutant with the id 12, 13.\nWhat to do: call list_mutants"),
        ("test_mutants", {"ids": ["12"], "since": "HEAD"}, "ids go without paths"),
        ("test_mutants", {"since": "HEAD"}, "need a git repository"),
        ("test_mutants", {"path": ["a.py"]}, "path: Extra inputs are not permitted"),
        ("show_mutant", {"id": "12"}, "no mutant with the id 12.\nWhat to do: call list_mutants"),
        ("survivors", {"paths": ["test_b.py"]}, "there is no file or directory test_b.py"),
        ("list_mutants", {"paths": ["/tmp"]}, "lies outside the project"),
        ("list_mutants", {"limit": 501}, "limit: Input should be less than or equal to 500"),
        ("list_mutants", {"cursor": "12"}, "call list_mutants without a cursor"),
    ],
    ids=str,
)
async def test_a_wrong_call_says_what_to_do(
    tool: str, arguments: dict[str, Any], advice: str, project: ScriptedProject, client: Talker
) -> None:
    assert advice in await miscalled(client, tool, **arguments)


async def test_paths_without_a_mutant_and_ids_that_are_gone_are_problems(
    project: ScriptedProject, client: Talker
) -> None:
    (problem,) = (await called(client, "test_mutants", paths=["test_a.py"]))["problems"]
    assert "no mutant lies in test_a.py: tests have none" in problem
    (problem,) = (await called(client, "list_mutants", paths=["test_a.py"]))["problems"]
    assert "list_mutants without paths has all" in problem
    of_a, of_b = (mutant["id"] for mutant in (await called(client, "list_mutants"))["mutants"])
    project.write("a.py", "\n\na = 1\n")
    report = await called(client, "test_mutants", ids=[of_a, of_b])
    assert (report["tested"], report["selected"], report["untested"]) == (1, 1, 0)
    assert report["problems"] == [f"there is no mutant with the id {of_a}: a.py was edited; call list_mutants"]
    assert f"no mutant with the id {of_a}.\nWhat to do: call list_mutants" in await miscalled(
        client, "test_mutants", ids=[of_a]
    )
    project.write("a.py", "")
    project.write("b.py", "")
    assert "b.py was edited.\nWhat to do: call list_mutants" in await miscalled(client, "test_mutants", ids=[of_b])


async def test_max_seconds_answers_with_what_is_tested_by_then(project: ScriptedProject, client: Talker) -> None:
    project.write("c.py", "c = 7\n")
    project.script(DIGIT, GATED)
    report = await called(client, "test_mutants", max_seconds=1)
    assert (report["selected"], report["tested"], report["untested"]) == (3, 2, 1)
    assert report["problems"] == ["max_seconds is over: the same call again goes on"]
    assert project.log[-1] == "closed"
    project.open("gate")
    report = await called(client, "test_mutants", limit=1, max_seconds=60)
    assert (report["tested"], report["untested"], report["problems"]) == (1, 0, [])


async def test_a_discovery_goes_on_after_its_call_and_the_next_one_waits_for_it(
    project: ScriptedProject, client: Talker
) -> None:
    project.script(discovery={"after": "gate"})
    report = await called(client, "test_mutants", max_seconds=1)
    assert (report["selected"], report["tested"]) == (0, 0)
    assert report["problems"] == [
        "max_seconds is over: the mutants are still being listed. That goes on; the same call again has them"
    ]
    waiting = await client.ask("tools/call", {"name": "test_mutants", "arguments": {}})
    await client.request("ping")
    assert project.log.count("discovering") == 1
    project.open("gate")
    report = (await client.result(waiting))["structuredContent"]
    assert (report["tested"], report["untested"]) == (2, 0)


async def test_the_end_of_the_server_ends_what_goes_on(project: ScriptedProject) -> None:
    project.script(discovery={"after": "gate"})
    async with agent_on(project) as client:
        for _ in range(4):
            id = await client.ask("tools/call", {"name": "list_mutants", "arguments": {}})
            await client.request("ping")
            await Mcp().cancel(client, id)
        await called(client, "survivors")
    assert [task for task in asyncio.all_tasks() if task.get_name() == "work of a call"] == []


async def test_verdicts_of_an_earlier_run_are_known_after_a_restart(project: ScriptedProject, tmp_path: Path) -> None:
    project.write("a.py", "a = 1\n")
    project.script(surroundings={})
    answers = []
    for tool in ("test_mutants", "survivors", "list_mutants"):
        async with agent_on(project, incremental=True, store=tmp_path / "verdicts") as client:
            answers.append(await called(client, tool))
    assert [(answer["tested"], answer["reused"], answer["counts"]) for answer in answers[:2]] == [
        (1, 0, {"Killed": 1}),
        (1, 1, {"Killed": 1}),
    ]
    assert [mutant["status"] for mutant in answers[2]["mutants"]] == ["Killed"]
    assert project.log.count("testing 1") == 1


async def test_a_run_without_mutants_goes_on_after_its_call(project: ScriptedProject, client: Talker) -> None:
    project.write("a.py", "a = 7\n")
    project.write("b.py", "")
    project.script(GATED, testing={"phase": BASELINE})
    report = await called(client, "test_mutants", max_seconds=1)
    assert (report["selected"], report["tested"], report["untested"]) == (1, 0, 1)
    assert report["problems"] == [
        "max_seconds is over: the tests still run without mutants. That goes on; the same call again tests the mutants then"
    ]
    waiting = await client.ask("tools/call", {"name": "test_mutants", "arguments": {}})
    await client.request("ping")
    assert [line for line in project.log if line in ("testing 1", "closed")] == ["testing 1"]
    project.open("gate")
    assert (await client.result(waiting))["structuredContent"]["tested"] == 1
    assert [line for line in project.log if line in ("testing 1", "closed")] == ["testing 1", "closed"] * 2


async def test_every_call_names_what_could_not_be_listed_or_was_left_out(
    project: ScriptedProject, client: Talker
) -> None:
    project.script(
        discovery={"unusable": {"b.py": "it ends in a def"}}, testing={"failing": {"test_red": "E  no\nmore"}}
    )
    left_out = "test_red fails without any mutant, and is left out: E  no"
    unusable = "b.py has no mutants: it ends in a def. What to do: correct the file"
    for _ in range(2):
        (of_file, of_test) = (await called(client, "test_mutants"))["problems"]
        assert of_file.startswith(unusable)
        assert of_test == left_out
    project.write("b.py", "def")
    for tool in ("list_mutants", "test_mutants"):
        (problem,) = (await called(client, tool, paths=["b.py"]))["problems"]
        assert problem.startswith(unusable)  # and not that there is nothing to test
