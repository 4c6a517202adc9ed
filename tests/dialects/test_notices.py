"""What a client is told beside its results: each about its own request, each time, and never by way of the log."""

import asyncio
import json
import logging
from pathlib import Path
from typing import Any

import pytest
from support.dialects import Lsp, Mcp, Msp, Mtp, Speech, Talker, TestRunner, every_protocol, greeted, opened, spoken_to
from support.msp_client import Refused
from support.servers import DIGIT, ScriptedProject

PROBLEM = "broken.py has no mutants: invalid syntax (line 1)"
UNUSABLE = {"unusable": {"broken.py": "invalid syntax (line 1)"}}


async def answered(client: Talker, method: str, params: Any) -> str:
    """The answer, its error, and all that was sent before, in one text."""
    before = len(client.notified)
    try:
        answer = await client.request(method, params)
    except Refused as error:
        answer = error.message
    return json.dumps([answer, client.notified[before:]], ensure_ascii=False)


@every_protocol
@pytest.mark.parametrize("others", [True, False], ids=["beside others", "alone"])
async def test_a_file_that_cannot_be_parsed_is_no_empty_success(
    speech: Speech, project: ScriptedProject, others: bool
) -> None:
    project.write("broken.py", "def (\n")
    if others:
        project.write("a.py", "1")
    project.script(discovery=UNUSABLE)
    speech.root = project.root
    async with opened(project) as workspaces, spoken_to(speech, workspaces) as client:
        if isinstance(speech, TestRunner) and not others:
            assert PROBLEM in (await client.refused("testrunner/start", {}))[1]
            return
        await speech.greet(client)
        for _ in range(2):
            assert PROBLEM in await answered(client, *speech.testing(1, None))
        if not isinstance(speech, TestRunner):  # it has no node for a file without mutants
            assert PROBLEM in await answered(client, *speech.testing(2, "broken.py"))
        if not isinstance(speech, Lsp) and not others:  # its lenses ask for nothing but what is known
            assert PROBLEM in await answered(client, *speech.discovering(3))


async def test_msp_lists_no_file_as_one_without_mutants_that_cannot_be_parsed(project: ScriptedProject) -> None:
    project.write("broken.py", "def (\n")
    project.write("a.py", "1")
    project.write("none.py", "x")
    project.script(discovery=UNUSABLE)
    async with greeted(Msp(), project) as client:
        named = [{"path": path} for path in ("broken.py", "a.py", "none.py")]
        answer = await client.request("discover", {"files": named})
        assert {path: len(file["mutants"]) for path, file in answer["files"].items()} == {"a.py": 1, "none.py": 0}


@pytest.mark.parametrize("level", [logging.ERROR, logging.CRITICAL])
async def test_a_failing_test_is_shown_to_the_clients_of_its_project_alone_in_each_request(
    tmp_path: Path, level: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(level)
    tmp_path.joinpath("both").mkdir()
    both = ScriptedProject(tmp_path / "both", tmp_path / "events")
    red, green = (ScriptedProject(both.root / name, tmp_path / name) for name in ("red", "green"))
    for project in (red, green):
        project.root.mkdir()
        project.events.mkdir()
        project.write("a.py", "1")
        project.script(testing={"failing": {"test_red": "assert 1 == 2"}} if project is red else {})
    speeches = [Lsp(project.root) for project in (red, green, red)]
    async with opened(both) as workspaces:
        async with spoken_to(speeches[0], workspaces) as first, spoken_to(speeches[1], workspaces) as second:
            for _ in range(2):
                requests = []
                for speech, client in ((speeches[0], first), (speeches[1], second)):
                    if not client.notified:
                        await speech.greet(client)
                    requests.append(answered(client, *speech.testing(1, "a.py")))
                shown, not_shown = await asyncio.gather(*requests)
                assert "left out, failing without any mutant: test_red" in shown
                assert "test_red" not in not_shown
            async with spoken_to(speeches[2], workspaces) as third:  # of the same project
                await speeches[2].greet(third)
                assert "test_red" in await answered(third, *speeches[2].testing(1, "a.py"))


async def test_an_agent_is_told_of_a_failing_test_in_each_call_and_of_phases_meanwhile(
    project: ScriptedProject,
) -> None:
    project.write("a.py", "1")
    project.write("b.py", "1")
    project.script({**DIGIT, "after": "gate"}, testing={"failing": {"test_red": "assert 1 == 2"}, "phase": "baking"})
    speech = Mcp()
    async with greeted(speech, project) as client:
        id = await client.ask(*speech.testing(1, "a.py"))
        while (await client.notification("notifications/progress"))["message"] != "baking":
            pass
        project.open("gate")
        answers = [(await client.answer(id))["result"], await client.request(*speech.testing(2, "b.py"))]
        for answer in answers:
            assert answer["structuredContent"]["problems"] == [
                "test_red fails without any mutant, and is left out: assert 1 == 2"
            ]


@pytest.mark.parametrize("speech", [Lsp(), Mcp(), Mtp()], ids=lambda speech: speech.name)
async def test_a_client_is_told_in_each_request_why_a_file_has_no_mutants(
    speech: Speech, project: ScriptedProject, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL, "msp_bridge")
    project.write("a.py", "1")
    project.write("none.py", "x")
    project.script(discovery={"remarks": {"none.py": "has no mutants: the tool leaves it out"}})
    async with greeted(speech, project) as client:
        for _ in range(2):
            assert "none.py has no mutants: the tool leaves it out" in await answered(
                client, *speech.testing(1, "none.py")
            )
        assert "none.py" not in await answered(client, *speech.testing(2, "a.py"))
