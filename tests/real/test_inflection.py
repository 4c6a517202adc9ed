"""A real library that nobody here wrote, with its own tests, through a real server on a socket.

A sample of the statuses is checked by fresh processes; `MSP_BRIDGE_CHECK=all` checks every one (some minutes).
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import psutil
import pytest
from attrs import frozen
from support.fresh_process import mutated, verdicts_of
from support.msp_client import Client, ReaderWriter
from support.servers import Server, launched, mutants_of

from msp_bridge.testing import TreeState

REQUIREMENT = "inflection==0.5.1 --hash=sha256:1a29730d366e996aaacffb2f1f1cb9593dc38e2ddd30c91250c6dde09ea9b417\n"


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sdist's tree, in a directory named as the library is."""
    home = tmp_path_factory.mktemp("library")
    (home / "requirements.txt").write_text(REQUIREMENT)
    download = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary", ":all:", "--require-hashes"]
    subprocess.run([*download, "-q", "-r", "requirements.txt"], cwd=home, check=True, stdin=subprocess.DEVNULL)
    with tarfile.open(next(home.glob("*.tar.gz"))) as sdist:
        sdist.extractall(home, filter="data")
    return next(home.glob("inflection-*/")).rename(home / "inflection")


@frozen
class Served:
    """A server on the library, and its first client."""

    library: Path
    server: Server
    client: Client

    async def results(self, params: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
        """Path and result of each mutant that a `mutationTest` reports."""
        assert await self.client.request("mutationTest", params) == {"files": {}}
        return self.client.take_results()

    def processes(self) -> list[psutil.Process]:
        """What the server has running."""
        return psutil.Process(self.server.process.pid).children(recursive=True)


def lines(first: int, last: int) -> dict[str, dict[str, int]]:
    """A range of MSP, up to the beginning of the last line."""
    return {"start": {"line": first, "column": 1}, "end": {"line": last, "column": 1}}


async def scenario(served: Served, tmp_path: Path) -> None:
    client = served.client
    assert await client.request("configure", {}) == {"version": "0.4.0"}

    discovered = mutants_of(await client.request("discover", {}))
    ids = [mutant["id"] for _, mutant in discovered]
    assert len(ids) == len(set(ids)) > 300
    for path, mutant in discovered:
        compile(mutated((served.library / path).read_text(), mutant), path, "exec")

    results = await served.results({})
    assert sorted(mutant["id"] for _, mutant in results) == sorted(ids)
    status = {mutant["id"]: mutant["status"] for _, mutant in results}
    whole = os.environ.get("MSP_BRIDGE_CHECK") == "all"
    sample = results if whole else results[:: len(results) // 16]
    verdicts = await asyncio.to_thread(verdicts_of, served.library, sample, tmp_path)
    pairs = zip(sample, verdicts, strict=True)
    assert [mutant for (_, mutant), verdict in pairs if mutant["status"] != verdict] == []

    path, mutant = discovered[len(discovered) // 2]
    one = await served.results({"files": [{"path": path, "range": mutant["location"]}]})
    assert mutant["id"] in {tested["id"] for _, tested in one}
    again = await served.results({"mutants": {path: {"mutants": [mutant]}}})
    assert [(tested["id"], tested["status"]) for _, tested in again] == [(mutant["id"], status[mutant["id"]])]
    few = {"files": [{"path": path, "range": lines(80, 130)}]}
    within = mutants_of(await client.request("discover", few))
    ranged = await served.results(few)
    assert {tested["id"] for _, tested in ranged} == {found["id"] for _, found in within}
    assert 0 < len(ranged) < len(results)
    assert {tested["id"]: tested["status"] for _, tested in ranged}.items() <= status.items()
    of_file = mutants_of(await client.request("discover", {"files": [{"path": str(served.library / path)}]}))
    assert {found["id"] for _, found in of_file} == {found["id"] for at, found in discovered if at == path}

    idle = len(served.processes())
    request = await client.ask("mutationTest", {})
    await client.some_progress()
    await client.cancelled(request)
    assert len(served.processes()) <= idle  # at once: the answer comes when they are gone
    client.take_results()
    assert len(await served.results({"mutants": {path: {"mutants": [mutant]}}})) == 1

    leaving = await served.server.connect()
    await leaving.ask("mutationTest", {})
    await leaving.some_progress()
    assert isinstance(leaving.wire, ReaderWriter)
    leaving.wire.abort()
    assert len(await served.results({"mutants": {path: {"mutants": [mutant]}}})) == 1


async def test_a_client_gets_everything_from_a_real_library(library: Path, tmp_path: Path) -> None:
    tree = TreeState.of(library)
    arguments = ("serve", "socket", "--port", "0", "--", "--adapter", "mutmut", "--python", sys.executable)
    async with launched(library, *arguments) as server:
        served = Served(library, server, await server.connect())
        await scenario(served, tmp_path)
        left = served.processes()
        server.process.terminate()
        assert await server.exited() == 0, server.said
        _, alive = psutil.wait_procs(left, timeout=10)  # they are gone; whoever adopted them may be slow to notice
        assert alive == []
    assert tree.differences(TreeState.of(library)) == []
