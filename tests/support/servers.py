"""Servers under test: a project with a scripted tool, served over memory, stdio or TCP, each by the code that users run."""

import asyncio
import contextlib
import gc
import json
import logging
import os
import re
import signal
import sys
import tempfile
import warnings
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, Self

import pytest
from attrs import field, frozen

from msp_bridge.__main__ import main
from msp_bridge.dialects.dialect import Dialect
from msp_bridge.dialects.msp import Msp
from msp_bridge.server import serve_client
from msp_bridge.testing import RunningProcesses
from msp_bridge.workspace.configuration import Configuration
from msp_bridge.workspace.open_workspaces import OpenWorkspaces
from support.memory_stream import MemoryStream
from support.msp_client import LONG, Client, Connections, ReaderWriter
from support.strays import with_argument

TESTS = Path(__file__).parents[1]
LOOK = 0.01  # s between two looks
COMMANDS = {  # of scripted_tools.py that call themselves by the name
    "hang": {"hang", "daemon"},
    "daemon": {"stubborn_and_tell"},
}
DIGIT = {"mutator": "digit", "find": "1", "replacement": "2"}


@frozen
class ScriptedProject:
    """A project whose tool does what its script says, and the directory where its gates open and its log grows."""

    root: Path
    events: Path

    @classmethod
    def made(cls, directory: Path) -> Self:
        """Below `directory`, with a script and no file yet."""
        project = cls(directory / "project", directory / "events")
        project.root.mkdir()
        project.events.mkdir()
        project.script()
        return project

    def script(self, *mutations: dict[str, Any], name: str = "scripted.json", **entries: Any) -> str:
        """Write the script: by default it replaces each 1 by 2, and kills each such mutant. Returns its name."""
        script = {"mutations": mutations or [DIGIT], "events": str(self.events), **entries}
        new = self.events / f"{name} to be"
        new.write_text(json.dumps(script))
        new.replace(self.root / name)  # at once: the tool may be reading it
        return name

    def write(self, path: str, text: str | bytes) -> str:
        """A file of the project; its absolute path."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(file)

    def open(self, gate: str) -> None:
        """Let what waits for `gate` go on."""
        (self.events / gate).touch()

    @property
    def log(self) -> list[str]:
        """What the tool has logged so far."""
        file = self.events / "log"
        return file.read_text().splitlines() if file.exists() else []

    async def logged(self, line: str) -> None:
        """Returns when the tool has logged `line`."""
        await until(lambda: line in self.log)

    def ready(self, name: str) -> list[int]:
        """The pids, in their own PID namespaces, of the programs of scripted_tools.py called `name` that have run so far."""
        return [int(file.name.rpartition("-")[2]) for file in self.events.glob(f"{name}-*")]

    async def started(self, name: str) -> int:
        """The pid of the program `name`, when it is ready."""
        await until(lambda: bool(self.running(name)))
        return self.running(name)[0]

    def running(self, name: str) -> list[int]:
        """The pids of the programs `name` that run now."""
        own = set(self.ready(name))
        if not own:  # a look at all processes of the machine takes many times as long
            return []
        commands = COMMANDS.get(name, {name})  # a program in another PID namespace may have the same pid
        return [
            pid
            for pid, command in with_argument(str(self.events)).items()
            if commands.intersection(command) and _own_pid(pid) in own
        ]

    def alive(self) -> list[str]:
        """The names of this project's tools that run now."""
        return sorted(name for name in ("hang", "stubborn", "daemon", "flood") for _ in self.running(name))


@contextlib.asynccontextmanager
async def scripted_project(directory: Path) -> AsyncIterator[ScriptedProject]:
    """A project without a file yet. Afterwards none of its tools runs, nor anything else that was started."""
    project = ScriptedProject.made(directory)
    running = RunningProcesses()
    yield project
    assert project.alive() == []
    assert await running.settled(0) == []


@frozen
class Server:
    """A server that was started as a process of its own."""

    process: asyncio.subprocess.Process
    said: list[str] = field(factory=list)  # the lines of its stderr so far
    connections: Connections = field(factory=Connections)  # that tests have opened to it

    async def exited(self) -> int:
        """Its exit code, when it has ended, whether or not anybody has read what it wrote: `wait()` would wait for that."""
        await until(lambda: self.process.returncode is not None)
        assert self.process.returncode is not None
        return self.process.returncode

    async def terminated(self) -> None:
        """End it by SIGTERM, in order."""
        self.process.terminate()
        assert await self.exited() == 0, self.said

    async def address(self) -> tuple[str, int]:
        """Where it listens; `localhost` may be two places, this is the first."""
        announced = re.compile(r"serving .+ on \[?([^\]]+)\]?:(\d+)$")
        await until(lambda: any(map(announced.search, self.said)))
        host, port = next(match.groups() for match in map(announced.search, self.said) if match)
        return host, int(port)

    def stdio(self) -> ReaderWriter:
        """The client's end of a server on stdio."""
        assert self.process.stdout is not None
        assert self.process.stdin is not None
        return ReaderWriter(self.process.stdout, self.process.stdin)

    async def connect(self) -> Client:
        """A new client of a server on a socket."""
        return Client(await self.connections.open(*await self.address()))


Serve = Callable[[ScriptedProject], AbstractAsyncContextManager[Client]]


@contextlib.asynccontextmanager
async def launched(cwd: Path, *arguments: str, forked: bool = False, **streams: Any) -> AsyncIterator[Server]:
    """`msp-bridge` with these arguments, as a process of its own; killed on leaving if it still runs.

    `forked`: a fork of this process, which has loaded what a start takes half a second to load.
    """
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), asyncio.subprocess.PIPE) | streams
    if forked:
        streams["preexec_fn"] = partial(_become, arguments, environment(cwd))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside threads
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "msp_bridge", *arguments, cwd=cwd, env=environment(cwd), **streams
        )
    server = Server(process)
    listening = asyncio.create_task(_listen(process, server.said))
    try:
        yield server
    finally:
        if process.returncode is None:
            process.kill()
        await server.exited()
        server.connections.abort()
        async with asyncio.timeout(LONG):
            await listening
        process._transport.close()  # type: ignore[attr-defined]  # asyncio keeps what nobody reads open


@contextlib.asynccontextmanager
async def over_memory(project: ScriptedProject) -> AsyncGenerator[Client, None]:
    """A client of a server in this process."""
    async with memory_of(project, Msp) as stream:
        yield Client(stream)


@contextlib.asynccontextmanager
async def memory_of(
    project: ScriptedProject, dialect: type[Dialect], **options: Any
) -> AsyncGenerator[MemoryStream, None]:
    """The client's end of a server in this process; `options` are those of its configuration."""
    ours, theirs = MemoryStream.pair()
    workspaces = OpenWorkspaces(project.root, Configuration(adapters=("scripted",), **options))
    serving = asyncio.create_task(serve_client(ours, workspaces, dialect))
    try:
        yield theirs
    finally:
        await theirs.vanish()
        async with asyncio.timeout(LONG):
            await serving
            await workspaces.aclose()


@contextlib.asynccontextmanager
async def over_stdio(project: ScriptedProject, *arguments: str) -> AsyncGenerator[Client, None]:
    """The client of `msp-bridge serve stdio`; closing its stdin ends the server in order."""
    async with on_stdio(project, *arguments) as (client, server):
        yield client
        await client.wire.aclose()
        assert await server.exited() == 0, server.said


@contextlib.asynccontextmanager
async def over_tcp(project: ScriptedProject) -> AsyncGenerator[Client, None]:
    """A client of `msp-bridge serve socket`; SIGTERM ends the server in order."""
    async with on_socket(project) as (client, server):
        yield client
        await server.terminated()


@contextlib.asynccontextmanager
async def on_stdio(project: ScriptedProject, *arguments: str) -> AsyncIterator[tuple[Client, Server]]:
    """As `over_stdio`, for tests of how it ends: they do that themselves."""
    arguments = ("serve", "stdio", *(arguments or ("--", "--adapter", "scripted")))
    async with launched(project.root, *arguments, forked=True) as server:
        yield Client(server.stdio()), server


@contextlib.asynccontextmanager
async def on_socket(project: ScriptedProject) -> AsyncIterator[tuple[Client, Server]]:
    """As `over_tcp`, for tests of how it ends: they do that themselves. Nothing ever comes on stdout."""
    arguments = ("serve", "socket", "--port", "0", "--", "--adapter", "scripted")
    async with launched(project.root, *arguments, forked=True, stdin=asyncio.subprocess.DEVNULL) as server:
        client = await server.connect()
        yield client, server
        await client.wire.aclose()
    assert server.process.stdout is not None
    assert await server.process.stdout.read() == b""


def refused_by(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """Exit code and stderr of `msp-bridge serve` in this process, which refuses to begin, and prints nothing."""
    monkeypatch.setattr(sys, "argv", ["msp-bridge", "serve", *arguments])
    with pytest.raises(SystemExit) as exit_:
        main()
    out, err = capsys.readouterr()
    assert out == ""
    return exit_.value.code, err


async def until(true: Callable[[], object], what: str = "what a test waits for") -> None:
    """Returns when `true()` is; the limit is for what would hang."""
    try:
        async with asyncio.timeout(LONG):
            while not true():
                await asyncio.sleep(LOOK)
    except TimeoutError:
        raise AssertionError(f"waited in vain: {what}") from None


def mutants_of(answer: Any) -> list[tuple[str, dict[str, Any]]]:
    """Path and mutant of each in a DiscoverResult or MutationTestResult."""
    return [(path, mutant) for path, file in answer["files"].items() for mutant in file["mutants"]]


def place(line: int, column: int, end_line: int, end_column: int) -> dict[str, dict[str, int]]:
    """A Location on the wire."""
    return {"start": {"line": line, "column": column}, "end": {"line": end_line, "column": end_column}}


def environment(cwd: Path) -> dict[str, str]:
    """Of a server in `cwd`: it finds the scripted adapter, and has a cache beside the project."""
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(TESTS), str(TESTS.parent)]),
        "MSP_BRIDGE_CACHE": str(cwd.parent / "cache"),
    }


def _become(arguments: Sequence[str], variables: Mapping[str, str]) -> NoReturn:
    """Be that command, with its stdin, stdout and stderr, in a process that has just been forked."""
    gc.freeze()  # what is garbage by now would close descriptors whose numbers are others' then
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    os.environ.clear()
    os.environ.update(variables)
    tempfile.tempdir = None
    sys.argv[1:] = arguments
    sys.stdin, sys.stdout, sys.stderr = (open(number, mode, closefd=False) for number, mode in enumerate("rww"))  # noqa: SIM115
    logging.root.handlers.clear()
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # as an interpreter has it from its start
    try:
        main()
    except SystemExit as end:
        os._exit(end.code if isinstance(end.code, int) else 1)
    finally:
        os._exit(70)


async def _listen(process: asyncio.subprocess.Process, said: list[str]) -> None:
    if process.stderr is not None:
        while line := await process.stderr.readline():
            said.append(line.decode().rstrip("\n"))


def _own_pid(pid: int) -> int | None:
    """What the process `pid` takes for its pid; None when it is gone."""
    if sys.platform != "linux":
        return pid
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return next(int(line.split()[-1]) for line in status.splitlines() if line.startswith("NSpid:"))


# The protocol is the same behind each stream: tests of what a stream could change (when bytes go out, an end, a restart)
# are run over all.
transports = pytest.mark.parametrize(
    "serve", [over_memory, over_stdio, over_tcp], ids=["memory", "stdio", "tcp"], indirect=True
)
