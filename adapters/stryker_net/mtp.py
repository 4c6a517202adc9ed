"""Microsoft.Testing.Platform (MTP): the test program is its own host, started anew for each mutant.

`dotnet X.Tests.dll --server --client-host 127.0.0.1 --client-port P` connects to a socket of ours and speaks JSON-
RPC, framed by Content-Length. `testing/runTests` takes the tests as they were received; `testing/testUpdates/tests`
reports each of them. xunit v3, MSTest, NUnit and TUnit have it.
[https://github.com/microsoft/testfx/blob/main/docs/mstest-runner-protocol/001-protocol-intro.md]
"""

from __future__ import annotations

import asyncio
import json
import os
import time
import uuid
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from msp_bridge.adapter import ToolError
from msp_bridge.processes import ProcessTree

from .hosts import Case, Link, Outcome, OutOfTime, ThreadTimes, activation, printed, within

FAILED = frozenset({"failed", "error", "timed-out", "cancelled"})
ENDED = FAILED | {"passed", "skipped"}
HEADER_END = b"\r\n\r\n"
SELECTING = ("uid", "display-name", "node-type", "location.type", "location.method")  # of a test's node


class HostProgram:
    """One test program."""

    def __init__(self, link: Link, source: str, *, stops: bool) -> None:
        self._link, self._source, self._stops = link, source, stops
        self.cases: dict[str, Case] = {}
        self.failures: list[tuple[str, str]] = []
        self.fault: str | None = None

    async def run(self, cases: Sequence[Case] | None) -> None:
        """Run `cases`, None for all tests; to the first failure, if it `stops` there."""
        try:
            client = {"processId": os.getpid(), "clientInfo": {"name": "msp-bridge", "version": "1"}}
            await self._send(1, "initialize", client | {"capabilities": {"testing": {"debuggerProvider": False}}})
            await self._until(1)
            chosen = {} if cases is None else {"tests": [json.loads(case.selector) for case in cases]}
            await self._send(2, "testing/runTests", {"runId": str(uuid.uuid4()), **chosen})
            await self._until(2)
        except (OSError, asyncio.IncompleteReadError):
            await self._link.tree.exited()
            self.fault = (
                f"the test program has ended with code {self._link.tree.returncode}: {printed(self._link.tree)}"
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ToolError(
                f"{self._source} sent what is no message ({error!r})", "update its test framework"
            ) from error

    async def _send(self, number: int, method: str, params: Any) -> None:
        await self._write({"jsonrpc": "2.0", "id": number, "method": method, "params": params})

    async def _write(self, message: Mapping[str, Any]) -> None:
        body = json.dumps(message).encode()
        head = b"Content-Length: %d\r\nContent-Type: application/testingplatform\r\n\r\n" % len(body)
        self._link.writer.write(head + body)
        await self._link.writer.drain()

    async def _until(self, number: int) -> None:
        while not (self._stops and self.failures):
            head = (await self._link.reader.readuntil(HEADER_END)).decode("latin-1").lower()
            fields = dict(line.split(":", 1) for line in head.split("\r\n") if line)
            message = json.loads(await self._link.reader.readexactly(int(fields["content-length"])))
            if message.get("method") == "testing/testUpdates/tests":
                for change in message["params"].get("changes") or ():
                    self._take(change["node"])
            elif "method" in message and "id" in message:  # a request of the program: to attach a debugger
                await self._write({"jsonrpc": "2.0", "id": message["id"], "result": None})
            elif message.get("id") == number:
                if "error" in message:
                    self.fault = f"the test program refused: {message['error'].get('message')}"
                return

    def _take(self, node: Mapping[str, Any]) -> None:
        state = node.get("execution-state")
        if state not in ENDED:
            return
        name, failed = str(node["display-name"]), state in FAILED
        selector = json.dumps({key: node[key] for key in SELECTING if key in node} | {"execution-state": "discovered"})
        seconds = float(node.get("time.duration-ms") or 0) / 1000
        self.cases[node["uid"]] = Case(node["uid"], name, self._source, selector, seconds, failed)
        if failed and not (self._stops and self.failures):
            self.failures.append((name, str(node.get("error.message") or "")))


class TestPrograms:
    """`Hosts` by the test programs themselves."""

    __test__ = False  # pytest would take it for a test

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env

    async def baseline(self, sources: Sequence[Path], timeout_s: float) -> tuple[Outcome, Sequence[Case]]:
        """See `Hosts.baseline`."""
        return await self._run([(str(source), None) for source in sources], None, timeout_s)

    async def run(self, mutant: int | None, cases: Sequence[Case], timeout_s: float) -> Outcome:
        """See `Hosts.run`."""
        by_source = sorted(cases, key=lambda case: case.source)
        groups = [(source, list(group)) for source, group in groupby(by_source, key=lambda case: case.source)]
        outcome, _ = await self._run(groups, mutant, timeout_s)
        return outcome

    def trim(self, limit: int) -> None:
        """Nothing is idle."""

    async def aclose(self) -> None:
        """Nothing is left: each run ends its own process."""

    async def _run(
        self, groups: Sequence[tuple[str, Sequence[Case] | None]], mutant: int | None, timeout_s: float
    ) -> tuple[Outcome, Sequence[Case]]:
        begun, trees = time.monotonic(), list[ProcessTree]()

        def thread_times() -> ThreadTimes:
            return trees[-1].thread_times() if trees else {}

        try:
            hosts = await within(timeout_s, self._each(groups, mutant, trees), thread_times)
        except OutOfTime as late:
            return Outcome(time.monotonic() - begun, timed_out=True, computed=late.computed), ()
        cases = {id: case for host in hosts for id, case in host.cases.items()}
        failures = [failure for host in hosts for failure in host.failures]
        fault = None if failures else next((host.fault for host in hosts if host.fault), None)
        spent = sum(case.seconds for case in cases.values())
        outcome = Outcome(time.monotonic() - begun, frozenset(cases), spent, failures, fault=fault)
        return outcome, tuple(cases.values())

    async def _each(
        self, groups: Sequence[tuple[str, Sequence[Case] | None]], mutant: int | None, trees: list[ProcessTree]
    ) -> list[HostProgram]:
        """One host after the other, with a mutant up to the first that fails. Appends to `trees` each one's tree."""
        hosts: list[HostProgram] = []
        for source, chosen in groups:
            hosts.append(await self._host(source, chosen, mutant, trees))
            if mutant is not None and (hosts[-1].failures or hosts[-1].fault):
                break
        return hosts

    async def _host(
        self, source: str, cases: Sequence[Case] | None, mutant: int | None, trees: list[ProcessTree]
    ) -> HostProgram:
        def argv(port: int) -> list[str]:
            return ["dotnet", source, "--server", "--client-host", "127.0.0.1", "--client-port", str(port)]

        link = await Link.start(Path(source).name, argv, Path(source).parent, {**self._env, **activation(mutant)})
        trees.append(link.tree)
        try:
            host = HostProgram(link, source, stops=mutant is not None)
            await host.run(cases)
            return host
        finally:
            await link.end()
