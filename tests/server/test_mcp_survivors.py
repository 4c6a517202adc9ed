"""`serve mcp`: the last results, the next survivor, and accepted ones."""

import tomllib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.dialects import Talker, agent_on, called, miscalled
from support.kept import KeptProject
from support.servers import DIGIT, ScriptedProject

from msp_bridge.model import Status

KILLED, SURVIVED = Status.KILLED, Status.SURVIVED


@pytest.fixture
def kept(project: ScriptedProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KeptProject:
    monkeypatch.setenv("MSP_BRIDGE_CACHE", str(tmp_path / "kept"))
    project.script({**DIGIT, "status": "Survived"})
    return KeptProject(project.root)


@pytest.fixture
async def client(project: ScriptedProject, kept: KeptProject) -> AsyncIterator[Talker]:
    project.write("a.py", "a = 1\nb = 1 + a\n")
    async with agent_on(project) as client:
        yield client


async def test_what_a_terminal_has_tested_is_known_without_a_test(client: Talker, kept: KeptProject) -> None:
    assert "no run of this project is kept" in await miscalled(client, "results")
    assert "call test_mutants" in await miscalled(client, "next_survivor")
    plus, digit = kept.mutant("a.py", "+", "-"), kept.mutant("a.py", "1", "2", "digit")
    kept.keep({digit: KILLED, plus: SURVIVED}, covered_by=("t.py::test_b", "t.py::test_a"))
    answer = await called(client, "results", status=["survived"])
    assert [(each["id"], each["after"]) for each in answer["mutants"]] == [(plus.id, "b = 1 - a")]
    assert answer["score"] == 0
    assert (await called(client, "results", mutator="digit"))["counts"] == {"Killed": 1}
    assert "choose from Killed" in await miscalled(client, "results", status=["dead"])


async def test_the_next_survivor_comes_with_its_diff_and_a_hint(client: Talker, kept: KeptProject) -> None:
    plus, one = kept.mutant("a.py", "+", "-"), kept.mutant("a.py", "1", "3")
    kept.keep({one: SURVIVED}, covered_by=("t.py::test_all",))
    kept.keep({plus: SURVIVED}, covered_by=("t.py::test_all", "t.py::test_sum"), whole=False)
    first = await called(client, "next_survivor")
    assert (first["mutant"]["id"], first["remaining"]) == (plus.id, 1)
    assert "+b = 1 - a\n" in first["diff"]
    assert "Add an assertion to t.py::test_sum" in first["hint"]
    second = await called(client, "next_survivor", skip=[plus.id])
    assert (second["mutant"]["id"], second["remaining"]) == (one.id, 0)
    assert "no survivor is left here" in await miscalled(client, "next_survivor", skip=[plus.id, one.id])


async def test_a_survivor_whose_lines_have_moved_has_the_id_and_the_place_that_it_has_now(
    client: Talker, kept: KeptProject
) -> None:
    kept.keep({kept.mutant("a.py", "1", "2", "digit"): SURVIVED})
    kept.write("a.py", "# new\n" + (kept.root / "a.py").read_text())
    moved = kept.mutant("a.py", "1", "2", "digit")
    answers = [(await called(client, "results"))["mutants"][0], (await called(client, "next_survivor"))["mutant"]]
    assert [(each["id"], each["line"], each["before"]) for each in answers] == [(moved.id, 2, "a = 1")] * 2
    assert (await called(client, "test_mutants", ids=[answers[0]["id"]]))["counts"] == {"Survived": 1}


async def test_an_accepted_survivor_is_no_survivor_any_more(client: Talker, kept: KeptProject) -> None:
    found = await called(client, "test_mutants")
    assert found["counts"] == {"Survived": 2}
    first = found["survivors"][0]["id"]
    answer = await called(client, "accept_mutant", id=first, reason="equal")
    assert answer == {"file": "mutants-accepted.toml", "written": True}
    assert not (await called(client, "accept_mutant", id=first, reason="equal"))["written"]
    assert [entry["reason"] for entry in tomllib.loads((kept.root / answer["file"]).read_text())["accepted"]] == [
        "equal"
    ]
    after = await called(client, "survivors")
    assert after["counts"] == {"Survived": 1, "Ignored": 1}
    assert after["outdated"] == 0  # no verdict depends on that file
    assert (await called(client, "next_survivor"))["mutant"]["id"] != first


async def test_only_a_survivor_is_accepted(client: Talker, kept: KeptProject) -> None:
    plus = kept.mutant("a.py", "+", "-")
    kept.keep({plus: KILLED})
    assert "no survivor is selected" in await miscalled(client, "accept_mutant", id=plus.id, reason="equal")
    assert "no mutant 12" in await miscalled(client, "accept_mutant", id="12", reason="equal")
