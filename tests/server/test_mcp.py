"""An agent's client, the SDK's own, against the server as users start it, with real mutmut on small projects."""

import asyncio
import contextlib
import json
import math
import re
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import jsonschema
import psutil
import pytest
from attrs import frozen
from mcp import Client, StdioServerParameters, stdio_client
from mcp_types import CallToolResult
from support.files import written
from support.strays import gone, marked, new_mark
from support.viewers import SCHEMA

from msp_bridge.mcp.answers import REPORT
from msp_bridge.testing import TreeState

SHOP = Path(__file__).parents[2] / "examples" / "shop"
WAIT_S = 60.0
SLOW = """\
import subprocess, sys
from pkg.a import unused

def test_slow():
    if unused() != 7:
        subprocess.run([sys.executable, "-c", "import time; time.sleep(600)", {mark!r}])
"""


@frozen
class Agent:
    """A client, and the project that its server is started in."""

    client: Client
    root: Path

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """What a tool answers."""
        result = await self.client.call_tool(tool, arguments)
        assert not result.is_error, text_of(result)
        assert text_of(result)
        answer: dict[str, Any] = result.structured_content
        return answer

    async def refused(self, tool: str, **arguments: Any) -> str:
        """What a tool says of a call that is wrong."""
        result = await self.client.call_tool(tool, arguments)
        assert result.is_error
        assert result.structured_content is None
        return text_of(result)


def text_of(result: CallToolResult) -> str:
    (content,) = result.content
    assert content.type == "text"
    return content.text


@contextlib.asynccontextmanager
async def agent(root: Path, monkeypatch: pytest.MonkeyPatch, *options: str) -> AsyncIterator[Agent]:
    monkeypatch.setenv("MSP_BRIDGE_CACHE", str(root.parent / "cache"))
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "msp_bridge", "serve", "mcp", *options],
        cwd=str(root),
        env={"MSP_BRIDGE_CACHE": str(root.parent / "cache"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )
    with anyio.fail_after(WAIT_S * 5):
        async with Client(stdio_client(server)) as client:
            yield Agent(client, root)


def project(root: Path) -> Path:
    """A project of mutmut's, with a package of one function that is tested halfway."""
    contents = {
        "pyproject.toml": '[tool.mutmut]\nsource_paths = ["pkg"]\n[tool.pytest.ini_options]\npythonpath = ["."]\n',
        "pkg/__init__.py": "",
        "pkg/a.py": "def add(a, b):\n    return a + b\n\n\ndef adult(age):\n    return age >= 18\n\n\ndef unused():\n    return 7\n",
        "tests/test_a.py": "from pkg.a import add, adult\n\n\ndef test_a():\n    assert add(1, 2) == 3\n    assert adult(30)\n",
    }
    return written(root, contents)


async def test_an_agent_finds_a_survivor_and_kills_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "shop"
    shutil.copytree(SHOP, root, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    before = TreeState.of(root)
    async with agent(root, monkeypatch) as at:
        found = await at.call("test_mutants", paths=["src/shop/cart.py:28-32"])
        (survivor,) = found["survivors"]
        assert survivor["before"] == "if amount >= FREE_SHIPPING_FROM:"
        assert survivor["after"] == "if amount > FREE_SHIPPING_FROM:"
        assert (survivor["status"], survivor["tests"], found["more_survivors"]) == ("Survived", 3, 0)
        assert found["counts"] == {"Killed": found["tested"] - 1, "Survived": 1}
        shown = await at.call("show_mutant", id=survivor["id"])
        assert "-    if amount >= FREE_SHIPPING_FROM:\n+    if amount > FREE_SHIPPING_FROM:\n" in shown["diff"]
        assert "tests/test_cart.py::test_total" in shown["covering_tests"]
        assert "No test asserts what differs." in shown["why"]
        assert before.differences(TreeState.of(root)) == []
        test = root / "tests" / "test_cart.py"
        test.write_text(test.read_text() + "\n\ndef test_free_from_fifty():\n    assert shipping(50_00) == 0\n")
        again = await at.call("test_mutants", ids=[survivor["id"]])
        assert again["counts"] == {"Killed": 1}
        shown = await at.call("show_mutant", id=survivor["id"])
        assert shown["killed_by"] == ["tests/test_cart.py::test_free_from_fifty"]
        assert (await at.call("survivors", paths=["src/shop/cart.py"]))["survivors"] == []


async def test_every_tool_answers_by_its_schema_and_touches_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = project(tmp_path / "project")
    before = TreeState.of(root)
    progress: list[tuple[float, float | None, str | None]] = []

    async def note(done: float, total: float | None, message: str | None) -> None:
        progress.append((done, total, message))

    async with agent(root, monkeypatch) as at:
        tools = {tool.name: tool for tool in (await at.client.list_tools()).tools}
        assert list(tools) == [
            *("test_mutants", "survivors", "show_mutant", "list_mutants", "ignore_mutant"),
            *("results", "next_survivor", "accept_mutant"),
        ]
        assert all(
            parameter["description"] for t in tools.values() for parameter in t.input_schema["properties"].values()
        )
        assert (await at.call("survivors"))["tested"] == 0

        pages, cursor = [], {}
        while True:
            page = await at.call("list_mutants", limit=2, **cursor)
            pages += page["mutants"]
            if page["next_cursor"] is None:
                break
            cursor = {"cursor": page["next_cursor"]}
        assert len(pages) == page["total"] == len({mutant["id"] for mutant in pages})
        assert {mutant["status"] for mutant in pages} == {"Pending"}
        assert [mutant["line"] for mutant in pages] == sorted(mutant["line"] for mutant in pages)

        result = await at.client.call_tool("test_mutants", {"limit": 2}, progress_callback=note)
        report = result.structured_content
        assert (report["tested"], report["selected"], report["untested"]) == (2, len(pages), len(pages) - 2)
        numbers = [done for done, _, _ in progress]
        assert numbers == sorted(set(numbers))
        assert progress[0] == (0, None, "looking for mutants")
        assert progress[-1][:2] == (2, 2)
        rest = await at.call("test_mutants")
        assert rest["untested"] == 0
        assert {survivor["line"] for survivor in rest["survivors"]} == {6, 10}
        assert [survivor["status"] for survivor in rest["survivors"][:2]] == ["Survived", "NoCoverage"]

        survivors = await at.call("survivors", paths=["pkg/a.py:6"], limit=1)
        assert survivors["more_survivors"] == survivors["counts"]["Survived"] - 1
        mutant = survivors["survivors"][0]
        edit = await at.call("ignore_mutant", id=mutant["id"], reason="adults\nare adults")
        assert edit["new_text"] == "  # pragma: no mutate  # adults are adults"
        assert "+    return age >= 18  # pragma: no mutate  # adults are adults\n" in edit["diff"]
        assert (edit["start_line"], edit["start_column"]) == (edit["end_line"], edit["end_column"]) == (6, 21)

        contents = (await at.client.read_resource(REPORT)).contents
        full = json.loads(contents[0].text)
        jsonschema.validate(full, SCHEMA)
        assert len(full["files"]["pkg/a.py"]["mutants"]) == len(pages)
        assert before.differences(TreeState.of(root)) == []

        git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
        for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "all"]):
            subprocess.run([*git, *command], cwd=root, check=True, timeout=WAIT_S)
        file = root / "pkg" / "a.py"
        file.write_text(file.read_text().replace("return 7", "return 8"))
        changed = await at.call("list_mutants", since="HEAD")
        assert {found["line"] for found in changed["mutants"]} == {10}
        of_others = [found["id"] for found in pages if found["line"] != 10]
        outdated = await at.call("survivors")
        assert (outdated["tested"], outdated["outdated"]) == (0, len(of_others))
        again = await at.call("test_mutants", ids=of_others[:1])
        assert (again["tested"], again["untested"]) == (1, 0)
        outdated = await at.call("survivors")
        assert (outdated["tested"], outdated["outdated"]) == (1, len(of_others) - 1)


async def test_a_project_that_can_not_be_tested_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root := tmp_path / "project").mkdir()
    async with agent(root, monkeypatch, "--root", ".") as at:
        refused = await at.refused("test_mutants")
        assert "no mutation testing tool is set up" in refused
        assert "What to do: `msp-bridge doctor`" in refused
        project(root)
        (root / "tests" / "test_red.py").write_text("from pkg.a import gone\n")
        assert "cannot import name 'gone'" in await at.refused("test_mutants")


async def test_a_cancelled_call_and_a_signal_end_every_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mark = new_mark()
    root = project(tmp_path / "project")
    (root / "tests" / "test_slow.py").write_text(SLOW.format(mark=mark))
    async with agent(root, monkeypatch, "--jobs", "1") as at:
        (server,) = (child for child in psutil.Process().children() if "serve" in child.cmdline())
        reported: list[float] = []

        async def hear(progress: float, _total: float | None, _message: str | None) -> None:
            reported.append(progress)

        async with anyio.create_task_group() as group:
            group.start_soon(lambda: at.client.call_tool("test_mutants", {}, progress_callback=hear))
            while not marked(mark):
                await anyio.sleep(0.02)
            group.cancel_scope.cancel()
        assert await gone(mark)
        assert server.is_running()
        assert (await at.call("survivors"))["tested"] >= math.floor(max(reported, default=0)), (
            "what was tested before the cancel is kept"
        )
        answers: list[dict[str, Any]] = []

        async def test(place: str) -> None:
            answers.append(await at.call("test_mutants", paths=[place]))

        async with anyio.create_task_group() as group:
            group.start_soon(test, "pkg/a.py:2")
            group.start_soon(test, "pkg/a.py:6")
        assert [answer["untested"] for answer in answers] == [0, 0]
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: at.client.call_tool("test_mutants", {"paths": ["pkg/a.py:10"]}))
            while not marked(mark):
                await anyio.sleep(0.02)
            descendants = server.children(recursive=True)
            server.terminate()  # in the middle of a call
            psutil.wait_procs([server, *descendants], timeout=WAIT_S)
            group.cancel_scope.cancel()
        assert [process for process in (server, *descendants) if process.is_running()] == []
        assert marked(mark) == []


async def test_lines_that_are_no_messages_are_answered_and_the_end_of_stdin_is_the_end(tmp_path: Path) -> None:
    root = project(tmp_path / "project")
    about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
    lines = [
        "no json",
        '{"jsonrpc": "2.0", "id": 1}',
        json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about}),
        "",
        json.dumps({"jsonrpc": "2.0", "id": 2, "method": "ping"}),
        json.dumps({"jsonrpc": "2.0", "id": 3, "method": "no/method"}),
        json.dumps({"jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": {"name": "survivors"}}),
    ]
    trace = tmp_path / "trace.jsonl"
    command = [sys.executable, "-m", "msp_bridge", "serve", "mcp", "--trace", str(trace)]
    pipe = subprocess.PIPE
    server = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, cwd=root)
    assert server.stdin is not None
    assert server.stdout is not None
    async with asyncio.timeout(WAIT_S):
        server.stdin.write("".join(f"{line}\n" for line in lines).encode())
        answers = [json.loads(await server.stdout.readline()) for _ in range(6)]
        server.stdin.close()
        assert await server.stdout.read() == b""
        assert await server.wait() == 0
    by_id = {answer["id"]: answer for answer in answers if answer["id"] is not None}
    assert [answer["error"]["code"] for answer in answers if answer["id"] is None] == [-32700, -32600]
    assert by_id[1]["result"]["serverInfo"]["name"] == "msp-bridge"
    assert by_id[2]["result"] == {}
    assert by_id[3]["error"]["code"] == -32601
    assert by_id[4]["result"]["structuredContent"]["tested"] == 0
    assert len(trace.read_text().splitlines()) == 1 + 6 + 6  # the start, what came, what went


def test_without_the_sdk_the_error_has_the_command_that_installs_it(tmp_path: Path) -> None:
    code = "import sys; sys.modules['mcp'] = None; sys.argv[1:] = ['serve', 'mcp']; from msp_bridge.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=WAIT_S)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "`serve mcp` needs the SDK of the Model Context Protocol" in done.stderr
    assert re.search(r"install .*'msp-bridge\[mcp\]'", done.stderr)  # by uv or pip
