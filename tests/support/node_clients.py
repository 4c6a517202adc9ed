"""Clients written from the protocols' specifications alone, with the JSON-RPC of VS Code, and the project that they test."""

import asyncio
import contextlib
import json
import shutil
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from msp_bridge.testing import RunningProcesses, TreeState
from support.files import written
from support.msp_client import LONG
from support.servers import environment, launched

CLIENTS = Path(__file__).parents[1] / "dialects" / "clients"
MODULES = Path(__file__).parents[1] / "npm" / "jsonrpc" / "node_modules"

FILES = {
    "src/calc/__init__.py": "",
    "src/calc/sums.py": "def add(a, b):\n    return a + b\n\n\ndef double(a):\n    return a * 2\n",
    "src/calc/odd.py": "def is_odd(n):\n    return n % 2 == 1\n",
    "tests/test_sums.py": "from calc.sums import add\n\n\ndef test_add():\n    assert add(2, 3) == 5\n",
    "tests/test_odd.py": "from calc.odd import is_odd\n\n\ndef test_is_odd():\n    assert is_odd(0) is False\n",
    "pyproject.toml": '[project]\nname = "calc"\nversion = "1"\n',
}


def python_project(directory: Path) -> Path:
    """Two files with mutants for mutmut: killed ones, survivors, and some that no test reaches."""
    root = directory / "project"
    return written(root, FILES)


async def talked(client: str, root: Path, channel: str, *arguments: str) -> Any:
    """What the client has found out in the end, of a server on `channel`: `stdio`, `socket`, `websocket` or what it listens for itself.

    Afterwards no process is left, and the tree is as it was.
    """
    assert MODULES.is_dir(), f"{MODULES} is missing: `make test` installs it"
    options = ("--", "--adapter", "mutmut", "--python", sys.executable)
    running, tree = RunningProcesses(), TreeState.of(root)
    async with contextlib.AsyncExitStack() as server:
        if channel == "listen":
            options = ("--adapter", "mutmut", "--python", sys.executable, "--server", "--client-host", "127.0.0.1")
            reach = ["listen", sys.executable, "-m", "msp_bridge", "serve", *arguments, *options, "--client-port"]
        elif channel in ("socket", "websocket"):
            reach = [channel, await server.enter_async_context(_listening(root, channel, *arguments, *options))]
        else:
            reach = [channel, sys.executable, "-m", "msp_bridge", "serve", "stdio", *arguments, *options]
        facts = await _facts_of(client, root, *reach)
    assert await running.settled(0) == []
    assert tree.differences(TreeState.of(root)) == []
    return facts


@contextlib.asynccontextmanager
async def _listening(root: Path, channel: str, *arguments: str) -> AsyncIterator[str]:
    arguments = (channel, "--port", "0", *arguments)
    async with launched(root, "serve", *arguments, forked=True, stdin=asyncio.subprocess.DEVNULL) as server:
        _, port = await server.address()
        yield str(port)
        await server.terminated()


async def _facts_of(client: str, root: Path, *reach: str) -> Any:
    node = shutil.which("node")
    assert node is not None
    process = await asyncio.create_subprocess_exec(
        node, str(CLIENTS / client), *reach, cwd=root, env=environment(root), stdout=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(2 * LONG):
        output, _ = await process.communicate()
    assert process.returncode == 0
    return json.loads(output)
