"""VSTest: the test host beside each assembly of VSTest tests, driven as vstest.console drives it.

Theory of operation
-------------------
`dotnet exec … testhost.dll --port P` connects to a socket of ours and waits for requests. A message is its length (7
bits in each byte, the last byte below 0x80), then JSON: {Version, MessageType, Payload}.

    started --ProtocolVersion--> agreed --TestExecution.Initialize, .StartWith…--> running --.Completed--> over
                                     running --first failing test--> cancelling --.Completed within CANCEL_S--> over
                                     over --TestSession.Terminate, SHUTDOWN_S--> ended

A run that is not over in time, is cancelled, or whose host has crashed is ended with all that it has started.

Invariants:
- A failing test doesn't kill the host at once: the framework disposes of its fixtures first, so that the next host
  finds no database or file of theirs.
- A run that is over leaves its host the time that vstest.console leaves it: what tests have registered for the end of
  the process is done, or not, as with it.
- Test cases are sent back as they were received: adapters of test frameworks keep what they need in properties of
  theirs.

Why not vstest.console, whose protocol for editors is documented: it starts the same host and says the same to it, and
takes a sixth of a mutant's time for that. Each console has to drive the hosts of older packages, so this protocol keeps
its old versions, too; a host that doesn't agree on one leaves its mutants to the tool.
[https://github.com/microsoft/vstest/blob/main/docs/RFCs/0007-Editors-API-Specification.md, and
Microsoft.TestPlatform.CrossPlatEngine/EventHandlers/TestRequestHandler.cs]
"""

import asyncio
import json
import os
import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from msp_bridge.concurrency import at_most

from .hosts import CONNECT_TIMEOUT_S, LEAVE_S, SHOWN_CHARS, USE_THE_TOOL, Case, Host, HostsUnavailable, Link

VERSION = 7  # of the protocol that is offered; the host answers with the one that it will speak
OLDEST = 2  # before, test cases have another shape
AGREE_S = CONNECT_TIMEOUT_S  # within which the version is agreed upon
CANCEL_S = 2.0  # within which a cancelled run must be over
SHUTDOWN_S = 0.1  # for the host to end by itself: as long as vstest.console waits
FAILED = 2  # TestOutcome
ERROR = 2  # TestMessageLevel
HOST = "testhost.dll"
ADAPTER = "testadapter.dll"  # what the names of test frameworks' adapters hold, in any case
SETTINGS = (
    "<RunSettings><RunConfiguration><CollectSourceInformation>false</CollectSourceInformation><DesignMode>true</DesignMode>"
    "<MaxCpuCount>1</MaxCpuCount><DisableAppDomain>true</DisableAppDomain>"
    "<DisableParallelization>true</DisableParallelization>"
    "<TargetFrameworkVersion>.NETCoreApp,Version=v{framework}</TargetFrameworkVersion></RunConfiguration></RunSettings>"
)
DURATION = re.compile(r"(?:(\d+)\.)?(\d+):(\d+):(\d+(?:\.\d+)?)")  # a TimeSpan


class TestHost(Host):
    """One test host of VSTest."""

    __test__ = False  # pytest would take it for a test
    name = "the test host"
    over = False  # whether the run has come to its end
    _version = 0

    def __init__(self, link: Link, source: str, *, stops: bool, ignored: Collection[str] = ()) -> None:
        super().__init__(link, source, stops=stops, ignored=ignored)
        self._errors: list[str] = []

    @staticmethod
    def command(source: str, port: int) -> list[str]:
        """Implement `Host.command`."""
        base = source.removesuffix(".dll")
        files = ["--runtimeconfig", f"{base}.runtimeconfig.json", "--depsfile", f"{base}.deps.json"]
        words = ["--port", str(port), "--endpoint", f"127.0.0.1:{port}", "--role", "client"]
        ours = ["--parentprocessid", str(os.getpid()), "--telemetryoptedin", "false"]
        return ["dotnet", "exec", *files, str(Path(source).with_name(HOST)), *words, *ours]

    async def run(self, cases: Sequence[Case] | None) -> None:
        """Implement `Host.run`."""
        try:
            await self._agree()
            await self._start(cases)
            while not self.over:
                self.take(*await self._receive())
                if self._stops and self.failures and not self.over:
                    await self._cancel()
                    break
            if self.over:
                await self._send("TestSession.Terminate", "null")
                async with at_most(SHUTDOWN_S):
                    await self._link.tree.exited()
        except (OSError, asyncio.IncompleteReadError):
            await self._ended()

    async def discover(self) -> None:
        """Implement `Host.discover`."""
        await self._agree()
        await self._send("TestDiscovery.Initialize", self._adapters)
        criteria = {
            "AdapterSourceMap": {"_none_": [self._source]},
            "FrequencyOfDiscoveredTestsEvent": 1000,
            "DiscoveredTestEventTimeout": "00:00:01.5",
            "RunSettings": self._settings,
        }
        await self._send("TestDiscovery.Start", json.dumps(criteria))
        while (await self._receive())[0] != "TestDiscovery.Completed":
            pass
        await self._send("TestSession.Terminate", "null")
        async with at_most(LEAVE_S):
            await self._link.tree.exited()

    @property
    def _adapters(self) -> str:
        """JSON."""
        beside = Path(self._source).parent.iterdir()
        return json.dumps(sorted(str(file) for file in beside if ADAPTER in file.name.lower()))

    @property
    def _settings(self) -> str:
        return SETTINGS.format(framework=framework_of(Path(self._source)) or "1.0")

    async def _agree(self) -> None:
        try:
            async with asyncio.timeout(AGREE_S):
                await self._send("ProtocolVersion", str(VERSION))
                kind, version = await self._receive()
        except TimeoutError:
            raise HostsUnavailable(f"{self.name} gives no answer", USE_THE_TOOL) from None
        if kind != "ProtocolVersion" or not isinstance(version, int) or version < OLDEST:
            raise HostsUnavailable(f"{self.name} offers version {version} of its protocol", USE_THE_TOOL)
        self._version = version

    async def _start(self, cases: Sequence[Case] | None) -> None:
        await self._send("TestExecution.Initialize", self._adapters)
        context = {
            "FrequencyOfRunStatsChangeEvent": 10 if cases is None else 1,
            "RunStatsChangeEventTimeout": "00:00:01.5",
            "InIsolation": False,
            "KeepAlive": False,
            "AreTestCaseLevelEventsRequired": False,
            "IsDebug": False,
            "TestCaseFilter": None,
            "FilterOptions": None,
        }
        common = (
            f'"RunSettings":{json.dumps(self._settings)},"TestExecutionContext":{json.dumps(context)},"Package":null'
        )
        if cases is None:
            sources = json.dumps({"_none_": [self._source]})
            await self._send("TestExecution.StartWithSources", f'{{"AdapterSourceMap":{sources},{common}}}')
        else:
            selectors = ",".join(case.selector for case in cases)
            await self._send("TestExecution.StartWithTests", f'{{"Tests":[{selectors}],{common}}}')

    async def _cancel(self) -> None:
        await self._send("TestExecution.Cancel", "null")
        async with at_most(CANCEL_S):
            while not self.over:
                self.take(*await self._receive())

    async def _send(self, kind: str, payload: str) -> None:
        version = f'"Version":{self._version},' if self._version else ""
        body = f'{{{version}"MessageType":"{kind}","Payload":{payload}}}'.encode()
        length, head = len(body), bytearray()
        while length >= 0x80:
            head.append(length & 0x7F | 0x80)
            length >>= 7
        head.append(length)
        await self._link.write(bytes(head) + body)

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
        except (ValueError, KeyError, TypeError) as error:
            raise HostsUnavailable(f"{self.name} sent what is no message ({error})", USE_THE_TOOL) from error

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
            if failed:
                self._note_failure(name, str(result.get("ErrorMessage") or ""))


def framework_of(assembly: Path) -> str | None:
    """The version of .NET that the test program `assembly` is built for, as 10.0; None when that isn't said."""
    try:
        options = json.loads(assembly.with_suffix(".runtimeconfig.json").read_bytes())["runtimeOptions"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    found = re.fullmatch(r"net(?:coreapp)?(\d+\.\d+)", str(options.get("tfm")))
    return found[1] if found else None


def _seconds(duration: Any) -> float:
    found = DURATION.fullmatch(str(duration))
    if found is None:
        return 0.0
    days, hours, minutes, seconds = found.groups(default="0")
    return ((int(days) * 24 + int(hours)) * 60 + int(minutes)) * 60 + float(seconds)
