"""Clients reach no file outside the root, name no configuration there, and add no word to any command."""

import json
import os
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from support.msp_client import Client, Refused
from support.scripted.scripted_adapter import Scripted
from support.servers import ScriptedProject, mutants_of, over_memory, over_stdio, place

from msp_bridge.adapter import Mutant, Result, Scope
from msp_bridge.testing import TreeState

SCRIPT = {"mutations": [{"mutator": "outsider", "find": "1", "replacement": "2"}]}
MUTANT = {"id": "1", "location": place(1, 1, 1, 2), "mutatorName": "digit", "replacement": "2"}
WAYS_OUT = [
    "{outside}/secret.py",
    "{outside}/gone.py",
    "{outside}/",
    "{outside}",
    "../outside/secret.py",
    "../outside",
    "..",
    "../",
    "/",
    "sub/../../outside/secret.py",
    "./sub/./../../outside/secret.py",
    "link.py",
    "sub/link.py",
    "dangling.py",
    "linked",
    "linked/",
    "linked/secret.py",
    "linked/gone.py",
    "linked/deep/../secret.py",
    "twice/secret.py",
    "sub/up/outside/secret.py",
    "{root}/linked/secret.py",
    "{root}/../outside/secret.py",
    "{root}2/secret.py",
    "{root}/sub/../../outside/",
]


@pytest.fixture
def outside(project: ScriptedProject) -> Path:
    """A directory beside the project, with a file that has a mutant and a configuration; links lead there."""
    outside = project.root.with_name("outside")
    (outside / "deep").mkdir(parents=True)
    (outside / "secret.py").write_text("1")
    (outside / "script.json").write_text(json.dumps(SCRIPT))
    twin = project.root.with_name("project2")
    twin.mkdir()
    (twin / "secret.py").write_text("1")
    project.write("a.py", "1")
    project.write("sub/b.py", "1")
    for name, target in (
        ("link.py", outside / "secret.py"),
        ("sub/link.py", "../../outside/secret.py"),
        ("dangling.py", outside / "gone.py"),
        ("linked", outside),
        ("twice", "linked"),
        ("sub/up", "../.."),
        ("inner.py", "sub/b.py"),
        ("linked.json", outside / "script.json"),
    ):
        (project.root / name).symlink_to(target)
    return outside


@pytest.fixture
async def client(project: ScriptedProject, outside: Path) -> AsyncIterator[Client]:
    async with over_memory(project) as client:
        yield client


@pytest.mark.parametrize("way", WAYS_OUT)
async def test_a_file_outside_is_ignored_however_it_is_named(
    way: str, project: ScriptedProject, client: Client, outside: Path
) -> None:
    path = way.format(outside=outside, root=project.root)
    files = {"files": [{"path": path}, {"path": path, "range": place(1, 1, 9, 9)}]}
    assert await client.request("discover", files) == {"files": {}}
    assert await client.request("mutationTest", files) == {"files": {}}
    assert await client.request("mutationTest", {"mutants": {path: {"mutants": [MUTANT]}}}) == {"files": {}}
    assert client.progress == []
    assert project.log == [], "no tool was called"


async def test_links_out_of_the_project_are_left_out_of_the_whole_of_it(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    inside = {"a.py", "inner.py", "sub/b.py"}
    for scope in ({}, {"files": [{"path": "."}]}, {"files": [{"path": "sub"}, {"path": "a.py"}, {"path": "inner.py"}]}):
        assert set((await client.request("discover", scope))["files"]) == inside
        assert await client.request("mutationTest", scope) == {"files": {}}
        assert {path for path, _ in client.take_results()} == inside
    assert "link.py is left out: a link leads out of " in caplog.text


@pytest.mark.parametrize(
    "way", [way.replace("secret.py", "script.json") for way in WAYS_OUT if "secret.py" in way] + ["linked.json"]
)
async def test_a_configuration_file_outside_is_an_error_however_it_is_named(
    way: str, project: ScriptedProject, client: Client, outside: Path
) -> None:
    path = way.format(outside=outside, root=project.root)
    project.root.with_name("project2").joinpath("script.json").write_text(json.dumps(SCRIPT))
    said = f"the configuration file {path!r} is not in {project.root}, and a client may name no other: "
    said += "start the server with `--config` and this file"
    assert await client.refused("configure", {"configFilePath": path}) == (-32803, said)
    assert {mutant["mutatorName"] for _, mutant in mutants_of(await client.request("discover"))} == {"digit"}


async def test_a_link_that_is_made_later_is_an_error_too(
    project: ScriptedProject, client: Client, outside: Path
) -> None:
    named = project.script(name="other.json")
    assert await client.request("configure", {"configFilePath": named}) == {"version": "0.4.0"}
    (project.root / named).unlink()
    (project.root / named).symlink_to(outside / "script.json")
    assert "a client may name no other" in (await client.refused("discover"))[1]


@pytest.mark.parametrize("way", ["{outside}/{name}", "../outside/{name}", "linked/{name}", "sub/up/outside/{name}"])
async def test_an_answer_does_not_show_whether_a_file_outside_exists(
    way: str, client: Client, outside: Path, project: ScriptedProject
) -> None:
    answers = []
    for name in ("secret.py", "gone.py"):
        path = way.format(outside=outside, name=name)
        with pytest.raises(Refused) as refused:
            await client.request("configure", {"configFilePath": path})
        answers.append(
            (
                refused.value.code,
                refused.value.message.replace(name, "NAME"),
                refused.value.data,
                await client.request("discover", {"files": [{"path": path}]}),
            )
        )
    assert answers[0] == answers[1]


async def test_the_file_that_the_server_was_started_with_may_lie_anywhere(
    project: ScriptedProject, outside: Path
) -> None:
    named = str(outside / "script.json")
    async with over_stdio(project, "--adapter", "scripted", "--config", named) as client:

        async def mutators() -> set[str]:
            return {mutant["mutatorName"] for _, mutant in mutants_of(await client.request("discover"))}

        assert await mutators() == {"outsider"}
        assert await client.request("configure", {"configFilePath": "scripted.json"}) == {"version": "0.4.0"}
        assert await mutators() == {"digit"}
        assert await client.request("configure", {"configFilePath": named}) == {"version": "0.4.0"}
        assert await mutators() == {"outsider"}
        (outside / "other.json").write_text(json.dumps(SCRIPT))
        await client.refused("configure", {"configFilePath": str(outside / "other.json")})


@pytest.mark.parametrize(
    "named",
    [
        "node_modules/dependency/script.json",
        "sub/node_modules/script.json",
        "NODE_MODULES/dependency/script.json",
        ".git/script.json",
        ".venv/lib/python3.13/site-packages/dependency/script.json",
        "sub/../node_modules/dependency/script.json",
        "environment/lib/script.json",
    ],
)
async def test_a_configuration_file_of_a_dependency_is_not_the_projects_own(
    named: str, project: ScriptedProject, client: Client
) -> None:
    project.write("environment/pyvenv.cfg", "")
    file = project.write(named, json.dumps(SCRIPT))
    for path in (named, file):
        said = (
            f"the configuration file {path!r} is a dependency's, or a cache's, and not this project's: name another, "
        )
        said += "or start the server with `--config` and this file"
        assert await client.refused("configure", {"configFilePath": path}) == (-32803, said)
    project.write("configurations/script.json", json.dumps(SCRIPT))
    assert await client.request("configure", {"configFilePath": "configurations/script.json"}) == {"version": "0.4.0"}


async def test_a_file_that_is_too_big_for_a_configuration_is_an_error(project: ScriptedProject, client: Client) -> None:
    with (project.root / "big.json").open("wb") as file:
        file.truncate(2**40)
    said = "'big.json' is too big for a configuration file: name another"
    assert await client.refused("configure", {"configFilePath": "big.json"}) == (-32803, said)


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["fifo", "directory"])
async def test_what_is_no_file_is_no_configuration(make: Any, project: ScriptedProject, client: Client) -> None:
    make(project.root / "odd.json")
    _, said = await client.refused("configure", {"configFilePath": "odd.json"})
    assert said.startswith("there is no configuration file 'odd.json' in ")


async def test_a_tool_gets_only_its_own_mutants_and_paths_in_the_project(
    project: ScriptedProject, client: Client, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scopes: list[Scope] = []
    tested: list[Mutant] = []
    discover, test = Scripted.discover, Scripted.test

    def discover_and_note(self: Scripted, scope: Scope) -> AsyncIterator[Mutant]:
        scopes.append(scope)
        return discover(self, scope)

    def test_and_note(self: Scripted, mutants: Sequence[Mutant]) -> AsyncIterator[Result]:
        tested.extend(mutants)
        return test(self, mutants)

    monkeypatch.setattr(Scripted, "discover", discover_and_note)
    monkeypatch.setattr(Scripted, "test", test_and_note)
    hostile = {**MUTANT, "mutatorName": "$(touch pwned)", "replacement": "; touch pwned", "id": "`touch pwned`"}
    paths = ["a.py", "link.py", "../outside/secret.py", "linked/", f"{outside}", "/etc/passwd", "$(touch pwned).py"]
    mutants = {path: {"mutants": [hostile, {**MUTANT, "description": "--config=evil.toml"}]} for path in paths}
    assert await client.request("mutationTest", {"mutants": mutants}) == {"files": {}}
    ((path, result),) = client.take_results()
    assert (path, result["mutatorName"], result["status"]) == ("a.py", "digit", "Killed")
    assert [(mutant.path, mutant.mutator, mutant.replacement) for mutant in tested] == [("a.py", "digit", "2")]
    assert [scope.paths for scope in scopes] == [frozenset({"a.py", "$(touch pwned).py"})]


async def test_no_message_starts_a_process_or_writes_a_file(
    project: ScriptedProject, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(*_: Any, **__: Any) -> None:
        raise AssertionError("a process was started")

    monkeypatch.setattr("msp_bridge.processes.tree.ProcessTree.start", never)
    tree = TreeState.of(project.root)
    words = [
        "; touch pwned",
        "$(touch pwned)",
        "--config=evil.toml",
        "| sh",
        "a.py\ntouch pwned",
        "@evil",
        "file://a.py",
    ]
    for word in words:
        for method, params in (
            ("discover", {"files": [{"path": word}]}),
            ("mutationTest", {"files": [{"path": word}]}),
            ("mutationTest", {"mutants": {word: {"mutants": [{**MUTANT, "mutatorName": word, "replacement": word}]}}}),
            ("mutationTest", {"mutants": {"a.py": {"mutants": [{**MUTANT, "mutatorName": word}]}}}),
        ):
            assert await client.request(method, params) == {"files": {}}
        for method, params in (
            ("configure", {"configFilePath": word}),
            (word, {"command": word}),
            ("workspace/executeCommand", {"command": word}),
        ):
            await client.refused(method, params)
        client.progress.clear()
    assert tree.differences(TreeState.of(project.root)) == []
