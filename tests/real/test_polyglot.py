"""One repository in six languages with all seven tools and generic ones, through one session over stdio.

mutmut, cosmic-ray, StrykerJS, gremlins and PIT are the real ones; Stryker.NET and cargo-mutants are scripted, as the SDK and cargo
are not everywhere. There is no Go and no Java in the main ring, which tests gremlins and PIT
alone, or where these are not installed.
"""

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE
from collections import Counter
from pathlib import Path
from typing import Any

import psutil
import pytest
from support import go_trees, java_trees, rust_trees
from support.msp_client import Client, Refused
from support.net_trees import scripted_dotnet
from support.projects import copied
from support.servers import launched, mutants_of
from support.strays import below
from support.stryker_js_trees import CORE9

from msp_bridge.testing import TreeState

FOLDERS = {"backend": "py_calc", "billing": "cr_flat", "svc": "net_calc", "web": "js_mocha"}
FOLDERS |= {"crates": "rust_stand_in", "shelf": "generic_shop"}
COMPILED = {"tools": "go_workspace/lib"} if go_trees.REAL else {}
COMPILED |= {"till": "java"} if java_trees.REAL else {}
TOOLS = {
    "backend": "mutmut",
    "billing": "cosmic-ray",
    "svc": "stryker-net",
    "web": "stryker-js",
    "crates": "cargo-mutants",
}
TOOLS |= {"shelf": "generic", "tools": "gremlins", "till": "pit"}
LANGUAGES = ("python", "javascript", "cs", "rust", "go", "java", "kotlin")
DONE: dict[str, Any] = {"files": {}}
JOBS = 2


@pytest.fixture
def folders(every_case: bool) -> dict[str, str]:
    """The project in each folder."""
    return FOLDERS | COMPILED if every_case else FOLDERS | {"backend": "../corpus/src_layout"}


@pytest.fixture
def repository(tmp_path: Path, folders: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for each tool, and one whose configuration is wrong."""
    rust_trees.stand_in(tmp_path, monkeypatch)
    monkeypatch.setenv("PATH", f"{tmp_path / 'programs'}{os.pathsep}{go_trees.PROGRAMS}")
    if "GOCACHE" not in os.environ:  # beside the other HOME it would be empty, and so would Maven's repository
        monkeypatch.setenv("GOCACHE", str(Path.home() / ".cache" / "go-build"))
    monkeypatch.setenv("MAVEN_OPTS", f"-Dmaven.repo.local={Path.home() / '.m2' / 'repository'}")
    scripted_dotnet(tmp_path, monkeypatch)
    root = tmp_path / "repository"
    for folder, project in folders.items():
        if project == "java":
            java_trees.smallest(tmp_path).rename(root / folder)
        else:
            copied(project, root, folder)
    assert CORE9.is_dir(), f"{CORE9} is missing: `make test` installs it"
    (root / "web" / "node_modules").symlink_to(CORE9)
    (root / "broken").mkdir()
    (root / "broken" / "msp-bridge.toml").write_text("jobs = 0\n")
    return root


async def results(client: Client, params: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """By id; each has come exactly once."""
    assert await client.request("mutationTest", params) == DONE
    taken = client.take_results()
    counts = Counter(mutant["id"] for _, mutant in taken)
    assert set(counts.values()) <= {1}
    return {mutant["id"]: mutant for _, mutant in taken}


def by_folder(found: list[tuple[str, dict[str, Any]]]) -> dict[str, list[tuple[str, dict[str, Any]]]]:
    folders: dict[str, list[tuple[str, dict[str, Any]]]] = {}
    for path, mutant in found:
        folders.setdefault(path.partition("/")[0], []).append((path, mutant))
    return folders


def lasting(pid: int) -> int:
    """Count the living descendants of a server, but for StrykerJS's test runners, which it replaces when it needs to.

    And but for `ps`, by which it finds what to end with one (tree-kill).
    """
    commands = [" ".join(command) for command in below(pid).values()]
    runners = sum("child-process-proxy-worker" in command for command in commands)
    assert runners <= JOBS
    return sum(not command.startswith("ps -o pid ") for command in commands) - runners


async def scenario(client: Client, root: Path, projects: set[str], pid: int) -> None:
    assert await client.request("configure", {}) == {"version": "0.4.0"}
    found = mutants_of(await client.request("discover", {}))
    folders = by_folder(found)
    assert folders.keys() == projects

    whole = await results(client, {})
    assert whole.keys() == {mutant["id"] for _, mutant in found}
    for of_folder in folders.values():
        statuses = {whole[mutant["id"]]["status"] for _, mutant in of_folder}
        assert "Killed" in statuses

    firsts = [of_folder[0] for of_folder in folders.values()]
    ids = {mutant["id"] for _, mutant in firsts}
    known = {path: {"mutants": [mutant]} for path, mutant in firsts}
    assert (await results(client, {"mutants": known})).keys() == ids
    ranges = [{"path": str(root / path), "range": mutant["location"]} for path, mutant in firsts]
    assert (await results(client, {"files": ranges})).keys() >= ids

    with pytest.raises(Refused, match=r"msp-bridge\.toml: jobs must be a whole number from 1 on, not 0"):
        await client.request("discover", {"files": [{"path": "broken/"}]})

    idle = lasting(pid)
    request = await client.ask("mutationTest", {})
    await client.some_progress()
    await client.cancelled(request)
    assert lasting(pid) <= idle
    client.take_results()


async def command(root: Path, *arguments: str) -> str:
    """What a command prints, in an environment as the server's; what it says of its progress goes to stderr."""
    argv = [sys.executable, "-m", "msp_bridge", *arguments]
    process = await asyncio.create_subprocess_exec(*argv, cwd=root, stdout=PIPE)
    return (await process.communicate())[0].decode()


async def test_the_commands_that_set_a_project_up_know_every_tool(repository: Path, folders: dict[str, str]) -> None:
    (repository / "broken" / "msp-bridge.toml").unlink()
    (repository / "web" / "stryker.config.json").unlink()
    tools = {folder: TOOLS[folder] for folder in folders}
    proposed = await command(repository, "init", "--yes")
    said = {
        words[4]: words[0] for line in proposed.splitlines() if len(words := line.split()) > 4 and words[2] == "files"
    }
    assert said == {f"{folder}/:": tool for folder, tool in tools.items() if tool != "generic"}
    assert json.loads((repository / "web" / "stryker.config.json").read_text())["testRunner"] == "mocha"

    found = json.loads(await command(repository, "doctor", "--json"))
    assert [finding for finding in found["findings"] if not finding["good"]] == []
    editor = await command(repository, "editors", "neovim-lsp")
    assert [language for language in LANGUAGES if f'"{language}"' not in editor] == []


async def test_one_session_drives_every_tool_of_a_repository(repository: Path, folders: dict[str, str]) -> None:
    tree = TreeState.of(repository)
    async with launched(repository, "serve", "stdio", "--", "--jobs", str(JOBS)) as server:
        client = Client(server.stdio())
        await scenario(client, repository, {*folders}, server.process.pid)
        running = psutil.Process(server.process.pid).children(recursive=True)
        await client.wire.aclose()
        assert await server.exited() == 0, server.said
    assert psutil.wait_procs(running, timeout=10)[1] == []
    assert tree.differences(TreeState.of(repository)) == []
