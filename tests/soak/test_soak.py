"""A soak: mixed requests of three clients to one server with two tools; memory, descriptors and processes stay flat.

Some hundred requests by default; `MSP_BRIDGE_SOAK=5000` (and `pytest -s`, for the figures) makes it more than an hour's
worth of an editor. Statuses are compared with those of the first run, every one of them.
"""

import asyncio
import contextlib
import os
import random
import shutil
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from attrs import define, field
from support.figures import Figures, check_flat
from support.msp_client import Client, ReaderWriter, Refused
from support.servers import Server, launched, mutants_of

from msp_bridge.testing import RunningProcesses, TreeState

ROOT = Path(__file__).parents[2]
PROJECTS = {"shop": ROOT / "examples/shop", "calc": ROOT / "tests/projects/cr_src"}
REQUESTS = int(os.environ.get("MSP_BRIDGE_SOAK", "160"))
ROUND = 40  # requests between two looks at an idle server
CLIENTS = 3
EDITED = ("shop/src/shop/receipt.py", "shop/tests/test_cart.py", "calc/src/calc/core.py", "calc/tests/test_core.py")
LINE = "# edited\n"

Found = tuple[str, dict[str, Any]]


@define(eq=False)
class Soak:
    """One server, and what is known of its mutants from the first run."""

    root: Path
    server: Server
    chance: random.Random
    counts: Counter[str] = field(factory=Counter)
    results: int = 0
    mutants: list[Found] = field(factory=list)
    status: dict[str, str] = field(factory=dict)

    async def learn(self, client: Client) -> None:
        """Test everything once."""
        self.mutants = mutants_of(await client.request("discover"))
        assert await client.request("mutationTest") == {"files": {}}
        self.status = {result["id"]: result["status"] for _, result in client.take_results()}
        assert self.status.keys() == {mutant["id"] for _, mutant in self.mutants}

    async def work(self, share: int) -> None:
        """`share` requests of one client, one after another."""
        client = await self.server.connect()
        deeds: dict[Callable[[Client], Awaitable[Client]], int] = {
            self.discover: 20,
            self.test_known: 30,
            self.test_range: 10,
            self.cancel: 12,
            self.configure: 5,
            self.be_wrong: 8,
            self.edit: 6,
            self.leave: 4,
        }
        for _ in range(share):
            (deed,) = self.chance.choices(list(deeds), list(deeds.values()))
            self.counts[deed.__name__] += 1
            client = await deed(client)
        await client.wire.aclose()

    def check(self, client: Client, expected: list[Found] | None = None) -> None:
        """What was reported has the status that it had the first time; each once."""
        results = client.take_results()
        ids = [result["id"] for _, result in results]
        assert len(ids) == len(set(ids))
        assert expected is None or set(ids) == {mutant["id"] for _, mutant in expected}
        wrong = [result for _, result in results if result["status"] != self.status[result["id"]]]
        assert wrong == []
        self.results += len(results)

    async def discover(self, client: Client) -> Client:
        """Everything, a directory, or a file."""
        path, _ = self.chance.choice(self.mutants)
        target = self.chance.choice([None, f"{path.split('/')[0]}/", path, str(self.root / path)])
        found = mutants_of(await client.request("discover", target and {"files": [{"path": target}]}))
        expected = [
            at for at, _ in self.mutants if target is None or f"{self.root / at}".startswith(f"{self.root / target}")
        ]
        assert sorted(at for at, _ in found) == sorted(expected)
        return client

    async def test_known(self, client: Client) -> Client:
        """Some mutants, and one that doesn't exist."""
        chosen = self.chance.sample(self.mutants, self.chance.choice([1, 1, 1, 3]))
        files: dict[str, Any] = {}
        for path, mutant in chosen:
            files.setdefault(path, {"mutants": []})["mutants"].append(mutant)
        gone = {**chosen[0][1], "id": "1", "mutatorName": "no such mutator"}
        files[chosen[0][0]]["mutants"].append(gone)
        assert await client.request("mutationTest", {"mutants": files}) == {"files": {}}
        self.check(client, chosen)
        return client

    async def test_range(self, client: Client) -> Client:
        """The mutants of a line."""
        path, mutant = self.chance.choice(self.mutants)
        line = mutant["location"]["start"]["line"]
        lines = {"start": {"line": line, "column": 1}, "end": {"line": line + 1, "column": 1}}
        target = {"files": [{"path": path, "range": lines}]}
        expected = mutants_of(await client.request("discover", target))
        assert await client.request("mutationTest", target) == {"files": {}}
        self.check(client, expected)
        return client

    async def cancel(self, client: Client) -> Client:
        """A run of everything, at some moment."""
        running = await client.ask("mutationTest", {"files": [{"path": f"{self.chance.choice(list(PROJECTS))}/"}]})
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.chance.uniform(0, 1)):
                await client.answer(-1)  # nobody asked that: reads what comes
        await client.cancel(running)
        with contextlib.suppress(Refused):
            await client.result(running)
        self.check(client)
        return client

    async def configure(self, client: Client) -> Client:
        """As an editor does."""
        assert await client.request("configure", {}) == {"version": "0.4.0"}
        return client

    async def be_wrong(self, client: Client) -> Client:
        """Say what is refused, or means nothing."""
        method, params = self.chance.choice(
            [
                ("initialize", {}),
                ("discover", {"files": 7}),
                ("mutationTest", {"mutants": [7]}),
                ("configure", {"configFilePath": "no such file"}),
                ("discover", {"files": [{"path": "no/such/file.py"}]}),
                ("mutationTest", {"files": []}),
                ("mutationTest", {"files": [{"path": "../outside.py"}]}),
            ]
        )
        answer = await client.answer(await client.ask(method, params))
        assert answer.get("result") == {"files": {}} or answer["error"]["code"] != -32603, answer
        return client

    async def edit(self, client: Client) -> Client:
        """Save a file whose mutants stay what they are."""
        self.save(self.chance.choice(EDITED))
        return client

    def save(self, path: str) -> None:
        """With one line more, or less; at once, as editors do."""
        file = self.root / path
        text = file.read_text()
        new = file.with_name("to be saved")
        new.write_text(text.removesuffix(LINE) if text.endswith(LINE) else text + LINE)
        new.replace(file)

    async def leave(self, client: Client) -> Client:
        """Vanish in the middle of a run; another client comes."""
        await client.ask("mutationTest")
        await asyncio.sleep(self.chance.uniform(0, 0.5))
        assert isinstance(client.wire, ReaderWriter)
        client.wire.abort()
        return await self.server.connect()

    async def look(self, client: Client, expected: Figures | None) -> Figures:
        """The figures of the idle server, when each tool has all the processes that it has when it is in use."""
        for path in EDITED:
            self.save(path)  # else a process whose answers are all known isn't needed, and not started again
        for name in PROJECTS:
            some = [found for found in self.mutants if found[0].startswith(name)][:6]
            files: dict[str, Any] = {}
            for path, mutant in some:
                files.setdefault(path, {"mutants": []})["mutants"].append(mutant)
            assert await client.request("mutationTest", {"mutants": files}) == {"files": {}}
            self.check(client, some)
        return await Figures.settled(self.server.process.pid, expected)

    def kill(self) -> None:
        """SIGKILL to any process of a tool."""
        victims = [
            tool
            for guard in psutil.Process(self.server.process.pid).children()
            for supervisor in guard.children()
            for tool in supervisor.children(recursive=True)
        ]
        with contextlib.suppress(psutil.NoSuchProcess):
            self.chance.choice(victims).kill()


@contextlib.asynccontextmanager
async def soaked(root: Path) -> AsyncIterator[Soak]:
    """A server on the projects in `root`. Nothing of it is left, nor is there a fault of ours in its log."""
    running = RunningProcesses()
    arguments = ["serve", "socket", "--port", "0", "--", "--python", sys.executable, "--jobs", "2"]
    async with launched(root, *arguments, stdin=asyncio.subprocess.DEVNULL) as server:
        yield Soak(root, server, random.Random(7))
        running.look()
        await server.terminated()
        assert "Traceback" not in "\n".join(server.said), "\n".join(server.said)
    assert await running.settled(0) == []


@pytest.mark.timeout(0)
async def test_a_server_that_is_used_for_long_stays_as_it_was(tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    for name, project in PROJECTS.items():
        shutil.copytree(project, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    before = TreeState.of(root)
    figures: list[Figures] = []
    async with soaked(root) as soak:
        client = await soak.server.connect()
        await soak.learn(client)
        began = time.monotonic()
        for number in range(max(3, REQUESTS // ROUND)):
            shares = [ROUND // CLIENTS] * (CLIENTS - 1)
            await asyncio.gather(*(soak.work(share) for share in [*shares, ROUND - sum(shares)]))
            figures.append(await soak.look(client, figures[0] if figures else None))
            done = (number + 1) * ROUND
            print(
                f"{done} requests, {soak.results} results, {time.monotonic() - began:.0f} s: {figures[-1]}", flush=True
            )
            if number % 3 == 0:
                soak.kill()
        await client.wire.aclose()
        print(dict(soak.counts))
        for path in EDITED:
            (root / path).write_text((root / path).read_text().removesuffix(LINE))
    after = TreeState.of(root)
    assert {path: state[2] for path, state in after.entries.items()} == {
        path: state[2] for path, state in before.entries.items()
    }
    check_flat(figures)
