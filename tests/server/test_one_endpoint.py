"""Several projects behind one endpoint: one session gets all of their answers, and a broken one spoils none."""

import json

import pytest
from support.msp_client import Client, Refused
from support.servers import DIGIT, ScriptedProject, mutants_of, transports

DONE = {"files": {}}
BROKEN = {"raises": ["ToolError", "no such thing; install it"]}


@pytest.fixture
def folders(project: ScriptedProject) -> ScriptedProject:
    """The scripted tool at the root, in `web/`, and broken in `svc/`."""
    for folder in ("", "web/", "svc/"):
        project.write(f"{folder}a.py", "1")
    script = {"mutations": [{**DIGIT, "status": "Survived"}], "events": str(project.events)}
    project.write("web/scripted.json", json.dumps(script))
    project.write("svc/scripted.json", json.dumps({**script, "discovery": BROKEN}))
    return project


@transports
async def test_one_session_is_answered_by_all_projects_with_paths_of_the_tree(
    folders: ScriptedProject, client: Client
) -> None:
    found = await client.request("discover")
    assert found["files"].keys() == {"a.py", "web/a.py"}
    assert await client.request("mutationTest") == DONE
    reported = {path: mutant["status"] for path, mutant in client.take_results()}
    assert reported == {"a.py": "Killed", "web/a.py": "Survived"}
    assert await client.request("mutationTest", {"mutants": found["files"]}) == DONE
    assert sorted(path for path, _ in client.take_results()) == ["a.py", "web/a.py"]


async def test_a_file_of_a_nested_project_by_its_absolute_path(folders: ScriptedProject, client: Client) -> None:
    found = await client.request("discover", {"files": [{"path": str(folders.root / "web" / "a.py")}]})
    ((path, mutant),) = mutants_of(found)
    assert path == "web/a.py"
    params = {"files": [{"path": path, "range": mutant["location"]}]}
    assert await client.request("mutationTest", params) == DONE
    ((path, result),) = client.take_results()
    assert (path, result["id"], result["status"]) == ("web/a.py", mutant["id"], "Survived")


async def test_only_requests_that_name_the_broken_project_fail(folders: ScriptedProject, client: Client) -> None:
    for method in ("discover", "mutationTest"):
        for path in ("svc/", "svc/a.py"):
            with pytest.raises(Refused, match="no such thing; install it"):
                await client.request(method, {"files": [{"path": path}]})
        await client.request(method, {"files": [{"path": "web/"}]})


async def test_a_project_that_appears_is_found_at_the_next_configure(folders: ScriptedProject, client: Client) -> None:
    await client.request("configure", {})
    folders.write("new/a.py", "1")
    script = {"mutations": [{**DIGIT, "mutator": "new"}], "events": str(folders.events)}
    folders.write("new/scripted.json", json.dumps(script))
    await client.request("configure", {})
    found = await client.request("discover", {"files": [{"path": "new/a.py"}]})
    assert [mutant["mutatorName"] for _, mutant in mutants_of(found)] == ["new"]
