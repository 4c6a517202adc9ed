"""VSTest: test hosts by the design mode of vstest.console, the protocol of Visual Studio, VS Code and `dotnet test`.

Theory of operation
-------------------
`dotnet vstest.console.dll /parentprocessid:N /port:P` (it lies in the SDK) connects to a socket of ours and waits for
requests. A message is its length (7 bits in each byte, the last byte below 0x80), then JSON: {Version, MessageType,
Payload}. Each request to run tests starts a process of its own, the test host, which loads the test assembly; the
console reports results and ends the host. So the console may stay for many mutants while no mutant sees what another
one has left in a static field.

    idle --run--> busy --TestExecution.Completed--> idle
                    |--first failing test--> cancelling --Completed within CANCEL_S--> idle
                    '--time-out, cancel, crash of the console, no Completed--> ended

The mutant is chosen by two variables in the RunSettings, which the console puts into the environment of the host
alone.

Invariants: a console has at most one request. A console in any other state than idle is never used again: it is ended
with all that it has started, since a host that hangs in a mutant may not react to the protocol's own cancel. Test
cases are sent back as they were received, byte for byte: adapters of test frameworks keep what they need in
properties of theirs.

Why not the test host alone, which would be faster: its protocol is VSTest's own matter and changes; the design mode
is what editors depend on. [https://github.com/microsoft/vstest/blob/main/docs/RFCs/0007-Editors-API-Specification.md]
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import time
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from msp_bridge.adapter import ToolError
from msp_bridge.concurrency import wait_shielded
from msp_bridge.processes import ProcessTree

from .hosts import (
    CONNECT_TIMEOUT_S,
    SHOWN_CHARS,
    USE_THE_TOOL,
    Case,
    HostEnded,
    HostsUnavailable,
    Link,
    Outcome,
    OutOfTime,
    ThreadTimes,
    activation,
    printed,
    within,
)

VERSION = 7  # of the protocol that is offered; the console answers with the one that it will speak
OLDEST = 2  # before, test cases have another shape
AGREE_S = CONNECT_TIMEOUT_S  # within which the version is agreed upon
CANCEL_S = 2.0  # within which a cancelled run must be over
FAILED = 2  # TestOutcome
ERROR = 2  # TestMessageLevel
SETTINGS = (
    "<RunSettings><RunConfiguration><CollectSourceInformation>false</CollectSourceInformation><DesignMode>true</DesignMode>"
    "<MaxCpuCount>1</MaxCpuCount><DisableAppDomain>true</DisableAppDomain>"
    "<DisableParallelization>true</DisableParallelization><BatchSize>{batch}</BatchSize>"
    "<EnvironmentVariables>{variables}</EnvironmentVariables></RunConfiguration></RunSettings>"
)
DURATION = re.compile(r"(?:(\d+)\.)?(\d+):(\d+):(\d+(?:\.\d+)?)")  # a TimeSpan


class Console:
    """One vstest.console. One request at a time."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._version = 0

    @classmethod
    async def start(cls, program: Path, cwd: Path, env: Mapping[str, str]) -> Console:
        """`program` is vstest.console.dll. Raises `HostsUnavailable`; no process is left then, nor after a cancel."""

        def argv(port: int) -> list[str]:
            return ["dotnet", str(program), f"/parentprocessid:{os.getpid()}", f"/port:{port}"]

        console = cls(await Link.start("vstest.console", argv, cwd, env))
        try:
            async with asyncio.timeout(AGREE_S):
                await console._agree()
        except BaseException as error:
            await console.end()
            if isinstance(error, TimeoutError):
                raise HostsUnavailable("vstest.console gives no answer", USE_THE_TOOL) from None
            raise
        return console

    async def run(self, cases: Sequence[Case] | None, sources: Sequence[Path], mutant: int | None) -> VsTestRun:
        """The results of `cases`, None for all tests of `sources`."""
        run = VsTestRun(stops=mutant is not None)
        settings = _settings(mutant)
        if cases is None:
            payload = json.dumps({"Sources": [str(source) for source in sources], "RunSettings": settings})
            await self._send("TestExecution.RunAllWithDefaultHost", payload)
        else:
            selectors = ",".join(case.selector for case in cases)
            payload = f'{{"TestCases":[{selectors}],"RunSettings":{json.dumps(settings)}}}'
            await self._send("TestExecution.RunSelectedWithDefaultHost", payload)
        while not run.over:
            run.take(*await self._receive())
            if run.stops and run.failures and not run.over:
                await self._send("TestExecution.Cancel", "null")
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(CANCEL_S):
                        while not run.over:
                            run.take(*await self._receive())
                break
        return run

    def thread_times(self) -> ThreadTimes:
        """Of itself and of its test hosts."""
        return self._link.tree.thread_times()

    async def end(self) -> None:
        """End it, with all that it has started."""
        await self._link.end()

    async def _agree(self) -> None:
        kind, _ = await self._receive()
        if kind != "TestSession.Connected":
            raise HostsUnavailable(f"vstest.console began with {kind}", USE_THE_TOOL)
        await self._send("ProtocolVersion", str(VERSION))
        kind, version = await self._receive()
        if kind != "ProtocolVersion" or not isinstance(version, int) or version < OLDEST:
            raise HostsUnavailable(f"vstest.console offers version {version} of its protocol", USE_THE_TOOL)
        self._version = version

    async def _send(self, kind: str, payload: str) -> None:
        version = f'"Version":{self._version},' if self._version else ""
        body = f'{{{version}"MessageType":"{kind}","Payload":{payload}}}'.encode()
        length, head = len(body), bytearray()
        while length >= 0x80:
            head.append(length & 0x7F | 0x80)
            length >>= 7
        head.append(length)
        try:
            self._link.writer.write(head + body)
            await self._link.writer.drain()
        except OSError as error:
            raise self._gone() from error

    async def _receive(self) -> tuple[str, Any]:
        try:
            length = shift = 0
            while True:
                [byte] = await self._link.reader.readexactly(1)
                length |= (byte & 0x7F) << shift
                shift += 7
                if byte < 0x80:
                    break
            message = json.loads(await self._link.reader.readexactly(length))
            return message["MessageType"], message.get("Payload")
        except (OSError, asyncio.IncompleteReadError) as error:
            raise self._gone() from error
        except (ValueError, KeyError, TypeError) as error:
            raise HostsUnavailable(f"vstest.console sent what is no message ({error})", USE_THE_TOOL) from error

    def _gone(self) -> ToolError:
        return HostEnded(f"vstest.console has ended ({printed(self._link.tree)})", USE_THE_TOOL)


class VsTestRun:
    """The results of one request, as they arrive."""

    def __init__(self, *, stops: bool) -> None:
        self.stops = stops  # at the first failing test
        self.over = False
        self.cases: dict[str, Case] = {}
        self.failures: list[tuple[str, str]] = []
        self.fault: str | None = None
        self._errors: list[str] = []

    def take(self, kind: str, payload: Any) -> None:
        """One message of the console."""
        if kind == "TestSession.Message" and payload.get("MessageLevel") == ERROR:
            self._errors.append(str(payload.get("Message")))
        elif kind == "TestExecution.StatsChange":
            self._results(payload.get("NewTestResults"))
        elif kind == "TestExecution.Completed":
            self._results((payload.get("LastRunTests") or {}).get("NewTestResults"))
            done = payload["TestRunCompleteArgs"]
            if done.get("IsAborted") or (done.get("Error") and not self.failures):
                words = [*self._errors, str((done.get("Error") or {}).get("Message") or "")]
                text = " ".join(" ".join(filter(None, words)).split())
                self.fault = text[:SHOWN_CHARS] or "the test host has ended early"
            self.over = True

    def _results(self, results: Any) -> None:
        for result in results or ():
            case = result["TestCase"]
            name = str(case.get("DisplayName") or case["FullyQualifiedName"])
            failed = result["Outcome"] == FAILED
            before = self.cases.get(case["Id"])  # a theory whose data have no ids of their own has several results
            self.cases[case["Id"]] = Case(
                case["Id"],
                name,
                str(case["Source"]),
                before.selector if before else json.dumps(case),
                _seconds(result.get("Duration")) + (before.seconds if before else 0.0),
                failed or (before is not None and before.failed),
            )
            if failed and not (self.stops and self.failures):
                self.failures.append((name, str(result.get("ErrorMessage") or "")))


class VsTest:
    """`Hosts` by vstest.console. Consoles are kept from run to run, as many as ran at once."""

    def __init__(self, cwd: Path, env: Mapping[str, str]) -> None:
        self._cwd, self._env = cwd, env
        self._program: Path | None = None
        self._idle: list[Console] = []
        self._ending: set[asyncio.Task[None]] = set()

    async def baseline(self, sources: Sequence[Path], timeout_s: float) -> tuple[Outcome, Sequence[Case]]:
        """See `Hosts.baseline`."""
        return await self._run(None, sources, None, timeout_s)

    async def run(self, mutant: int | None, cases: Sequence[Case], timeout_s: float) -> Outcome:
        """See `Hosts.run`."""
        outcome, _ = await self._run(cases, (), mutant, timeout_s)
        return outcome

    def trim(self, limit: int) -> None:
        """See `Hosts.trim`."""
        while len(self._idle) > limit:
            self._end(self._idle.pop())

    async def warm(self) -> None:
        """Start a console ahead, if there is none. Raises `ToolError`."""
        if not self._idle:
            self._idle.append(await self._start())

    async def aclose(self) -> None:
        """End every process."""
        self.trim(0)
        while self._ending:
            await wait_shielded(asyncio.gather(*self._ending, return_exceptions=True))

    async def _run(
        self, cases: Sequence[Case] | None, sources: Sequence[Path], mutant: int | None, timeout_s: float
    ) -> tuple[Outcome, Sequence[Case]]:
        console = self._idle.pop() if self._idle else await self._start()
        begun, sound = time.monotonic(), False
        try:
            run = await within(timeout_s, console.run(cases, sources, mutant), console.thread_times)
            sound = run.over
        except OutOfTime as late:
            return Outcome(time.monotonic() - begun, timed_out=True, computed=late.computed), ()
        except HostEnded as error:
            return Outcome(time.monotonic() - begun, fault=error.problem), ()
        finally:
            if sound:
                self._idle.append(console)
            else:
                await wait_shielded(self._end(console))
        seconds = time.monotonic() - begun
        fault = None if run.failures else run.fault
        spent = sum(case.seconds for case in run.cases.values())
        outcome = Outcome(seconds, frozenset(run.cases), spent, tuple(run.failures), fault=fault)
        return outcome, tuple(run.cases.values())

    async def _start(self) -> Console:
        if self._program is None:
            self._program = await _console_in(self._cwd, self._env)
        try:
            return await Console.start(self._program, self._cwd, self._env)
        except HostEnded:  # once more, for it may have been killed from outside
            return await Console.start(self._program, self._cwd, self._env)

    def _end(self, console: Console) -> asyncio.Task[None]:
        task = asyncio.create_task(console.end(), name="end of vstest.console")
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        return task


async def sdk_version(cwd: Path, env: Mapping[str, str]) -> str:
    """Of the .NET SDK that `dotnet` takes in `cwd`, where a global.json may ask for one. Raises `ToolError`."""
    return (await _printed(["dotnet", "--version"], cwd, env))[-1]


async def _console_in(cwd: Path, env: Mapping[str, str]) -> Path:
    """vstest.console.dll of that SDK."""
    version = await sdk_version(cwd, env)
    for line in await _printed(["dotnet", "--list-sdks"], cwd, env):  # 10.0.100 [/usr/share/dotnet/sdk]
        name, _, directory = line.partition(" [")
        program = Path(directory.removesuffix("]"), name, "vstest.console.dll")
        if name == version and program.is_file():
            return program
    raise HostsUnavailable(f"the .NET SDK {version} has no vstest.console.dll", USE_THE_TOOL)


async def _printed(command: Sequence[str], cwd: Path, env: Mapping[str, str]) -> list[str]:
    """The lines that `command` prints, one at least. Raises `ToolError`."""
    try:
        async with (
            ProcessTree.running(command, cwd=cwd, env=env, grace=0, pid_namespace=False) as tree,
            asyncio.timeout(CONNECT_TIMEOUT_S),
        ):
            lines = [line.decode("utf-8", "replace").strip() async for line in tree.lines()]
            code = await tree.exited()
    except TimeoutError:
        raise ToolError(f"`{' '.join(command)}` gives no answer", "install the .NET SDK") from None
    if code != 0 or not lines:
        raise ToolError(f"`{' '.join(command)}` failed ({printed(tree)})", "install the .NET SDK")
    return lines


def _settings(mutant: int | None) -> str:
    variables = "".join(f"<{name}>{escape(value, quote=False)}</{name}>" for name, value in activation(mutant).items())
    return SETTINGS.format(batch=10 if mutant is None else 1, variables=variables)


def _seconds(duration: Any) -> float:
    found = DURATION.fullmatch(str(duration))
    if found is None:
        return 0.0
    days, hours, minutes, seconds = found.groups(default="0")
    return ((int(days) * 24 + int(hours)) * 60 + int(minutes)) * 60 + float(seconds)
