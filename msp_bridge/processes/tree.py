"""ProcessTree: a tool and all its descendants, which `end` ends. `supervisor` has the theory of operation."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shutil
import signal
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import TypedDict, Unpack

import psutil

from msp_bridge.concurrency import shielded
from msp_bridge.errors import ToolError
from msp_bridge.processes import sweep
from msp_bridge.processes.supervised import PipeReader, PipeWriter, SupervisedProcess

log = logging.getLogger(__name__)

GRACE_S = 1.0  # between SIGTERM and SIGKILL: a cancel is to be answered within 2 s, whatever the tool does
TAIL_BYTES = 16 * 1024  # at the end of a tool's stderr that are remembered for error messages
HEAD_BYTES = 1024  # at its beginning
MAX_NOISE_BYTES = 1024 * 1024  # that a tool may print before the line that begins its output
SIGNALLED = 128  # a shell's exit code is this and the number of the signal
EXIT_TIMEOUT_S = 2.0  # for the end of a tool that has closed its input
STDERR_TIMEOUT_S = 0.5  # for the end of stderr, when nothing of the tree is left


class StartOptions(TypedDict, total=False):
    """How a tool is started."""

    env: Mapping[str, str | None] | None  # changes to our own environment; None removes a variable
    stdin: bool  # else the tool reads the null device
    grace: float  # s between SIGTERM and SIGKILL
    pid_namespace: bool  # else it has none (`number_one`), and can look up processes whose ids it is given
    shell_status: bool  # exit code 128 + N: signal N has ended the tool, when `argv` runs another command


class ProcessTree:
    """One running tool.

    Resource handling: the caller that starts a tree ends it, on every path; `running` does both. After `end` no process
    of the tree is alive, also not one that was double-forked, has a session of its own, or ignores SIGTERM. When the
    tool ends by itself, what it left behind is ended then. When the bridge is killed, even with SIGKILL, the tree ends
    too.

    Back-pressure: `lines` reads from the pipe only while its next item is awaited, so a slow reader stops the tool.

    Platforms: Linux is exact. On macOS a process that leaves both its parent and its environment behind escapes.
    """

    def __init__(
        self,
        process: SupervisedProcess,
        run_id: str,
        grace: float,
        stdout: PipeReader,
        stderr: PipeReader,
        stdin: PipeWriter | None,
        *,
        shell_status: bool = False,
    ) -> None:
        self._process, self._run_id, self._grace = process, run_id, grace
        self._stdout, self._stderr, self._stdin = stdout, stderr, stdin
        self._shell_status = shell_status
        self._head, self._tail = bytearray(), bytearray()
        self._listening = asyncio.create_task(self._listen(), name="stderr of a tool")
        self._ending: asyncio.Task[None] | None = None

    @classmethod
    async def start(
        cls, argv: Sequence[str | os.PathLike[str]], *, cwd: Path, **options: Unpack[StartOptions]
    ) -> ProcessTree:
        """Start `argv` in `cwd`. Raises ToolError when there is no such program or directory."""
        starting = asyncio.create_task(cls._start(argv, cwd, **options), name="start of a tool")
        try:
            return await shielded(starting)
        except asyncio.CancelledError:
            if starting.exception() is None:
                await starting.result().end()
            raise

    @classmethod
    async def _start(
        cls,
        argv: Sequence[str | os.PathLike[str]],
        cwd: Path,
        *,
        env: Mapping[str, str | None] | None = None,
        stdin: bool = False,
        grace: float = GRACE_S,
        pid_namespace: bool = True,
        shell_status: bool = False,
    ) -> ProcessTree:
        run_id = uuid.uuid4().hex
        named = {"PWD": os.path.abspath(cwd)}  # else a link to it, or where the user is: some programs rely on it
        environment = _environment({**named, **(env or {})}) | {sweep.RUN_ID: run_id}
        command = [_program(argv[0], environment), *(os.fspath(argument) for argument in argv[1:])]
        if not cwd.is_dir():
            raise ToolError(f"can't run {Path(command[0]).name} in {cwd}: there is no such directory")
        with contextlib.ExitStack() as theirs, contextlib.ExitStack() as ours:
            stdout, out = PipeReader.create(theirs)
            ours.callback(stdout.close)
            stderr, err = PipeReader.create(theirs)
            ours.callback(stderr.close)
            writer, source = None, asyncio.subprocess.DEVNULL
            if stdin:
                writer, source = PipeWriter.create(theirs)
                ours.callback(writer.close)
            streams = (source, out, err)
            process = await SupervisedProcess.start(
                command, cwd, environment, run_id, grace, streams, pid_namespace=pid_namespace
            )
            ours.pop_all()
        for stream in (stdout, stderr, writer):
            if stream is not None:
                await stream.connect()
        return cls(process, run_id, grace, stdout, stderr, writer, shell_status=shell_status)

    @classmethod
    @contextlib.asynccontextmanager
    async def running(
        cls, argv: Sequence[str | os.PathLike[str]], *, cwd: Path, **options: Unpack[StartOptions]
    ) -> AsyncIterator[ProcessTree]:
        """`start`, and `end` on leaving the block."""
        tree = await cls.start(argv, cwd=cwd, **options)
        try:
            yield tree
        finally:
            await tree.end()

    @property
    def pid(self) -> int:
        """The pid of the tree's topmost process: the supervisor's guard, and not the tool."""
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """The tool's exit code, negative for a signal; None while it runs or its leftovers are being ended."""
        code = self._process.returncode
        if self._shell_status and code is not None and SIGNALLED < code < SIGNALLED + signal.NSIG:
            return SIGNALLED - code
        return code

    def thread_times(self) -> dict[tuple[int, int], float]:
        """Seconds of CPU that each thread (process id, thread id) of the tree has had. Blocks for some ms."""
        found: dict[tuple[int, int], float] = {}
        with contextlib.suppress(psutil.Error):
            for process in psutil.Process(self.pid).children(recursive=True):
                with contextlib.suppress(psutil.Error):  # gone meanwhile
                    found |= {(process.pid, each.id): each.user_time + each.system_time for each in process.threads()}
        return found

    @property
    def outcome(self) -> str:
        """How the tool has ended: `exit code 3`, `killed by SIGKILL`."""
        code = self.returncode
        if code is None or code >= 0:
            return "it runs" if code is None else f"exit code {code}"
        try:
            return f"killed by {signal.Signals(-code).name}"
        except ValueError:  # a real-time signal
            return f"killed by signal {-code}"

    @property
    def errors(self) -> str:
        """The tail of the tool's stderr."""
        return bytes(self._tail).decode("utf-8", "replace")

    @property
    def first_errors(self) -> str:
        """The first lines of the tool's stderr: what comes before a stack trace of a million lines."""
        return bytes(self._head).decode("utf-8", "replace")

    @property
    def both_errors(self) -> str:
        """The first lines and the tail of the tool's stderr: all of it, where it is short."""
        first, last = self.first_errors, self.errors
        return last if last.startswith(first) else f"{first} … {last}"

    async def lines(self, after: bytes | None = None) -> AsyncGenerator[bytes, None]:
        """The tool's stdout, line by line, without line ends, until it closes. Raises ToolError for a giant line.

        `after` is the line that begins the output: what an interpreter's environment prints before it is left out, and
        raises ToolError when it doesn't end.
        """
        noise = 0
        async for line in self._stdout.lines():
            if after is None:
                yield line
            elif line == after:
                after = None
            elif (noise := noise + len(line) + 1) > MAX_NOISE_BYTES:
                shown = line[:50].decode("utf-8", "replace")
                raise ToolError(f"the tool prints without end before its output begins: {shown!r} for instance")

    async def read(self) -> bytes:
        """Some bytes of the tool's stdout, or b"" at its end."""
        return await self._stdout.read()

    async def output(self, *, tail: int | None = None) -> bytes:
        """The tool's stdout until it closes: all that is left of it, or the last `tail` bytes."""
        printed = bytearray()
        while data := await self.read():
            printed += data
            if tail is not None:
                del printed[:-tail]
        return bytes(printed)

    async def write(self, data: bytes) -> None:
        """Write to the tool's stdin, and wait until the tool keeps up. Raises ToolError when it no longer reads."""
        if self._stdin is None:
            raise ValueError("this tree was started without stdin")
        try:
            await self._stdin.write(data)
        except ConnectionError as error:  # as a rule it has ended, and how is what matters
            await asyncio.wait([asyncio.ensure_future(self._process.gone()), self._listening], timeout=EXIT_TIMEOUT_S)
            runs = self.returncode is None
            what = "the tool has stopped reading its input" if runs else f"the tool ended ({self.outcome})"
            raise ToolError(f"{what}: {self.errors.strip()[-500:] or error}") from None

    def post(self, data: bytes) -> None:
        """Write to the tool's stdin without waiting: what it has not read yet is kept in memory.

        Nothing is raised when the tool no longer reads: the end of its output follows.
        """
        if self._stdin is None:
            raise ValueError("this tree was started without stdin")
        self._stdin.post(data)

    async def exited(self) -> int:
        """Wait until the tool has ended by itself and its leftovers are gone. Returns its exit code."""
        await self._process.gone()
        await self.end()
        assert self.returncode is not None
        return self.returncode

    async def end(self) -> None:
        """End every process of the tree; returns when all are gone. May be called again; a cancel waits for the end."""
        if self._ending is None:
            self._ending = asyncio.create_task(self._end(), name="end of a tool")
        await shielded(self._ending)

    async def _end(self) -> None:
        if self._stdin is not None:
            self._stdin.close()
        if not await self._process.end(self._grace):  # guard and supervisor were killed
            await asyncio.to_thread(sweep.end, self._run_id, None, 0.0)
        self._stdout.close()
        await asyncio.wait([self._listening], timeout=STDERR_TIMEOUT_S)  # its last lines say what went wrong
        self._stderr.close()
        await self._listening

    async def _listen(self) -> None:
        """Keeps both ends of stderr, and never lets the tool wait for room in that pipe."""
        while data := await self._stderr.read():
            self._head += data[: HEAD_BYTES - len(self._head)]
            self._tail += data
            del self._tail[:-TAIL_BYTES]
            log.debug("stderr: %s", data.decode("utf-8", "replace").rstrip())


def _environment(changes: Mapping[str, str | None]) -> dict[str, str]:
    merged = {**os.environ, **changes}
    return {name: value for name, value in merged.items() if value is not None}


def _program(name: str | os.PathLike[str], environment: Mapping[str, str]) -> str:
    found = shutil.which(name, path=environment.get("PATH"))
    if found is None:
        raise ToolError(
            f"can't run {os.fspath(name)}: there is no such program", "install it, or put its directory on PATH"
        )
    return os.path.abspath(found)
