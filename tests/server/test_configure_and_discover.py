"""Transcripts of `configure` and `discover`, and of what holds for every method, over each transport."""

from typing import Any

import pytest
from support.msp_client import Client, Refused
from support.servers import DIGIT, ScriptedProject, Serve, mutants_of, over_stdio, place, transports

VERSION = {"version": "0.4.0"}


async def test_configure_answers_the_exact_version_with_any_valid_params(client: Client) -> None:
    assert await client.request("configure", {}) == VERSION
    assert await client.request("configure") == VERSION
    assert await client.request("configure", {"configFilePath": None}) == VERSION
    assert await client.request("configure", {"fromALaterProtocol": True}) == VERSION


async def test_configure_may_come_again_with_another_file(project: ScriptedProject, client: Client) -> None:
    project.write("a.py", "1 one")
    other = project.script({"mutator": "word", "find": "one", "replacement": "two"}, name="other.json")

    async def mutators() -> list[str]:
        return [mutant["mutatorName"] for _, mutant in mutants_of(await client.request("discover"))]

    assert await mutators() == ["digit"]
    assert await client.request("configure", {"configFilePath": other}) == VERSION
    assert await mutators() == ["word"]
    assert await client.request("configure", {"configFilePath": str(project.root / other)}) == VERSION
    assert await mutators() == ["word"]
    assert await client.request("configure", {}) == VERSION
    assert await mutators() == ["digit"]


async def test_an_unusable_configuration_is_an_error_and_the_last_one_stays(
    project: ScriptedProject, client: Client
) -> None:
    project.write("a.py", "1")
    missing = f"there is no configuration file 'no/such.toml' in {project.root}: correct the path, or leave it out"
    assert await client.refused("configure", {"configFilePath": "no/such.toml"}) == (-32803, missing)
    wrong = "msp-bridge.toml: unknown key 'jbos': did you mean 'jobs'?"
    project.write("wrong/msp-bridge.toml", "jbos = 2")
    assert await client.refused("configure", {"configFilePath": "wrong/msp-bridge.toml"}) == (-32803, wrong)
    assert len(mutants_of(await client.request("discover"))) == 1


async def test_discover_lists_every_mutant_of_the_whole_project_by_file(
    project: ScriptedProject, client: Client
) -> None:
    project.write("a.py", "x = 1\ny = 11\n")
    project.write("sub/deep/b.py", "1")
    project.write("none.py", "")
    project.write("not.mine", "1")
    answer = await client.request("discover", {})
    ids = [mutant.pop("id") for _, mutant in mutants_of(answer)]
    common = {"mutatorName": "digit", "replacement": "2"}
    assert answer == {
        "files": {
            "a.py": {
                "mutants": [
                    {"location": place(1, 5, 1, 6), **common},
                    {"location": place(2, 5, 2, 6), **common},
                    {"location": place(2, 6, 2, 7), **common},
                ]
            },
            "sub/deep/b.py": {"mutants": [{"location": place(1, 1, 1, 2), **common}]},
        }
    }
    assert len(set(ids)) == 4
    assert all(type(id) is str and id.isdecimal() and int(id) < 2**53 for id in ids)
    assert await client.request("discover", {"files": None}) == await client.request("discover")


async def test_columns_count_utf16_code_units_and_lines_end_at_line_feeds(
    project: ScriptedProject, client: Client
) -> None:
    project.write("a.py", "\ufeff'\U0001f600' 1\r\n\t1 e\u0301 1\u2028 1\n".encode())
    found = [mutant["location"] for _, mutant in mutants_of(await client.request("discover"))]
    assert found == [place(1, 6, 1, 7), place(2, 2, 2, 3), place(2, 7, 2, 8), place(2, 10, 2, 11)]
    assert await client.request("mutationTest", {"files": [{"path": "a.py", "range": found[0]}]}) == {"files": {}}
    assert [mutant["location"] for _, mutant in client.take_results()] == found[:1]


async def test_a_file_that_is_named_is_in_the_answer_even_without_mutants(
    project: ScriptedProject, client: Client
) -> None:
    project.write("empty.py", "nothing")
    project.write("sub/empty.py", "nothing")
    named = [{"path": str(project.root / "empty.py")}, {"path": "sub/empty.py"}]
    assert await client.request("discover", {"files": named}) == {
        "files": {"empty.py": {"mutants": []}, "sub/empty.py": {"mutants": []}}
    }
    assert await client.request("discover", {"files": [{"path": "sub/"}]}) == {"files": {}}


async def test_what_is_not_there_outside_or_not_mutable_is_ignored(project: ScriptedProject, client: Client) -> None:
    project.write("a.py", "1")
    project.write("not.mine", "1")
    outside = project.write("../outside.py", "1")
    strange = [
        "gone.py",
        "gone/",
        "not.mine",
        outside,
        "../outside.py",
        "/",
        "",
        "a.py\0",
        "a.py/",
        "~/a.py",
        "x" * 5000,
    ]
    only_strange = {"files": [{"path": path} for path in strange if path]}
    assert set((await client.request("discover", only_strange))["files"]) <= {"a.py"}
    files = [{"path": path} for path in ("gone.py", "not.mine", outside, "x" * 5000)]
    assert await client.request("discover", {"files": files}) == {"files": {}}
    assert await client.request("mutationTest", {"files": files}) == {"files": {}}
    assert client.progress == []
    assert set((await client.request("discover", {"files": [*files, {"path": "a.py"}]}))["files"]) == {"a.py"}


async def test_wrong_params_are_an_error_with_every_fault_and_its_path(client: Client) -> None:
    files = [{"path": 7}, {"range": place(0, 1, 1, 2)}, "a.py"]
    with pytest.raises(Refused) as refused:
        await client.request("discover", {"files": files})
    assert refused.value.code == -32602
    assert refused.value.data is not None
    assert len(refused.value.data["faults"]) == 4
    for part in (
        "params.files[0].path: must be a string, not 7",
        "path is missing",
        "params.files[1].range.start.line: must be a whole number from 1 on, not 0",
        "params.files[2]: must be an object, not 'a.py'",
    ):
        assert part in refused.value.message
    for method, params in (
        ("configure", {"configFilePath": 7}),
        ("mutationTest", {"files": "a.py"}),
        ("mutationTest", {"mutants": {"a.py": {}}}),
        ("mutationTest", {"mutants": {"a.py": {"mutants": [{"id": 7}]}}}),
        ("discover", []),
    ):
        assert (await client.refused(method, params))[0] == -32602
    assert await client.request("configure") == VERSION


@transports
async def test_an_error_of_the_tool_is_answered_in_its_own_sentence(project: ScriptedProject, client: Client) -> None:
    project.write("a.py", "1")
    sentence = "mutaturtle is too old: pip install 'mutaturtle>=2'"
    for kind in ("ToolError", "ConfigurationError"):
        for faults, method in (("discovery", "discover"), ("discovery", "mutationTest"), ("testing", "mutationTest")):
            script: dict[str, Any] = {faults: {"raises": [kind, sentence]}}
            project.script(**script)
            answer = await client.answer(await client.ask(method, {}))
            assert answer["error"] == {"code": -32803, "message": sentence}
    project.script()
    assert len(mutants_of(await client.request("discover"))) == 1


async def test_a_project_without_a_tool_is_an_error_until_one_is_set_up(
    project: ScriptedProject, client: Client
) -> None:
    project.write("a.py", "1")
    (project.root / "scripted.json").unlink()
    said = f"scripted is not set up in {project.root}: `msp-bridge doctor` says what is missing"
    for method in ("configure", "discover", "mutationTest"):
        assert await client.refused(method) == (-32803, said)
    project.script()
    assert len(mutants_of(await client.request("discover"))) == 1


@transports
async def test_ids_are_the_same_in_every_request_and_after_a_restart(project: ScriptedProject, serve: Serve) -> None:
    project.script(DIGIT, {"mutator": "letter", "find": "x", "replacement": "y"})
    project.write("a.py", "x = 1")
    project.write("sub/b.py", "x = 1")
    async with serve(project) as client:
        everything = mutants_of(await client.request("discover"))
        scopes = [{"path": "sub/"}, {"path": "sub/b.py", "range": place(1, 1, 1, 99)}]
        assert [mutants_of(await client.request("discover", {"files": [scope]})) for scope in scopes] == [
            everything[2:]
        ] * 2
        await client.request("mutationTest", {"files": [{"path": "sub/b.py"}]})
        assert [(path, mutant["id"]) for path, mutant in client.take_results()] == [
            (path, mutant["id"]) for path, mutant in everything[2:]
        ]
    assert len({mutant["id"] for _, mutant in everything}) == 4
    project.write("a.py", "x = 1  # edited, but not before the mutants")
    async with over_stdio(project) as client:
        assert mutants_of(await client.request("discover")) == everything


async def test_mutants_with_the_same_identity_are_one(project: ScriptedProject, client: Client) -> None:
    project.script(DIGIT, DIGIT, discovery={"repeats": True, "invents": True})
    project.write("a.py", "1 1")
    answer = await client.request("discover")
    assert len(answer["files"]["a.py"]["mutants"]) == 2
    assert set(answer["files"]) == {"a.py"}, "a mutant of a file that the adapter doesn't claim isn't its own"
    await client.request("mutationTest")
    assert [mutant["id"] for _, mutant in client.take_results()] == [mutant["id"] for _, mutant in mutants_of(answer)]
