"""Hosts: what a test host is asked and what it answers, whichever protocol it speaks, and the connection to it.

A test host is a process that runs tests of one assembly. Each run has its own: whatever a mutant does to it, the next
one finds a fresh one. `vstest` and `testing_platform` speak the protocols.
"""

import asyncio
import contextlib
import logging
import re
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

from attrs import field, frozen

from msp_bridge.adapter import ToolError
from msp_bridge.concurrency import at_most, cancel_all, in_thread, meanwhile, shielded
from msp_bridge.processes import ProcessTree

log = logging.getLogger(__name__)
T = TypeVar("T")
ThreadTimes = Mapping[tuple[int, int], float]  # process id and thread id to seconds of CPU

# The switch in mutated assemblies: MUTANT_VARIABLE, which CONTROL_VARIABLE names, has the id of the active mutant. It
# is read once, when the first mutant is met. Older assemblies don't hold the name of CONTROL_VARIABLE
# [Stryker.Core/InjectedHelpers/MutantControl.cs].
CONTROL_VARIABLE = "STRYKER_MUTANT_ID_CONTROL_VAR"
MUTANT_VARIABLE = "ACTIVE_MUTATION"
# The name of a file among the temporary ones, to which assemblies write at their end which mutants they have met. Each
# adds its own name. Older ones don't.
COVERAGE_VARIABLE = "STRYKER_COVERAGE_FILE"
LEAVE_S = 10.0  # within which a host ends by itself, and has written that file
CONNECT_TIMEOUT_S = 300.0  # a host that can't run ends much sooner
CHUNK_BYTES = 1 << 16
SHOWN_CHARS = 600  # characters of a program's last words in a message
CERTAIN = 1.25  # of a time limit: the host's start takes some of it, and beside others a processor is slower
BUSY = 0.6  # of the time, at least: a thread that computes and has to share a processor with few others
LOOK_S = 0.1  # between two looks
USE_THE_TOOL = 'set `engine = "tool"`'


@frozen
class Case:
    """One test, as the baseline run met it."""

    id: str  # of VSTest or of the testing platform: that of `coveredBy` in the tool's report
    name: str
    source: str  # the path of its assembly
    selector: str = field(repr=False)  # JSON: what selects it in a request
    seconds: float = 0.0
    failed: bool = False  # without any mutant


@frozen
class Outcome:
    """The outcome of one run of a test host, exactly one of four: failures, no answer in time, a fault, or success."""

    seconds: float
    completed: frozenset[str] = frozenset()  # ids of the tests that have ended
    test_seconds: float = 0.0  # of these alone
    failures: Sequence[tuple[str, str]] = ()  # name of the test, its message; the first only, when there was a mutant
    timed_out: bool = False
    computed: bool = False  # with `timed_out`: nothing took the processor from it, see `within`
    fault: str | None = None  # why the run ended early: the host has crashed


class OutOfTime(Exception):
    """A run has not ended in time. `computed` as in `Outcome`."""

    def __init__(self, *, computed: bool) -> None:
        self.computed = computed


async def within(limit_s: float, run: Coroutine[Any, Any, T], threads: Callable[[], ThreadTimes]) -> T:
    """Return the result of `run`, if it comes within `limit_s`. `threads` gives the times of the threads it may have.

    Raises `OutOfTime`: another mutant may have taken the processor from this one, unless one of its threads has
    computed for `CERTAIN` times the limit; for that, one that computes all the time gets the time it needs.
    """
    begun, wait_s = time.monotonic(), limit_s
    async with meanwhile(run, "run of a test host") as task:
        while not (await asyncio.wait([task], timeout=wait_s))[0]:
            longest_s = max((await in_thread(threads)).values(), default=0.0)
            elapsed_s = time.monotonic() - begun
            computed = longest_s >= CERTAIN * limit_s
            if computed or longest_s < BUSY * elapsed_s or elapsed_s > CERTAIN * limit_s / BUSY:
                raise OutOfTime(computed=computed)
            wait_s = max(LOOK_S, CERTAIN * limit_s - longest_s)
        return task.result()


def activation(mutant: int | None) -> Mapping[str, str]:
    """The variables of a host's environment that make `mutant` the active one."""
    return {} if mutant is None else {CONTROL_VARIABLE: MUTANT_VARIABLE, MUTANT_VARIABLE: str(mutant)}


class HostsUnavailable(ToolError):
    """Mutants can't be tested in test hosts here: the tool's own runs can."""


class HostEnded(HostsUnavailable):
    """A test host ended before it was asked anything: by a mutant, or from outside."""


@frozen(eq=False)
class Link:
    """A program that has connected to a socket of ours, on this machine only: `reader` and `writer` are that socket."""

    name: str
    tree: ProcessTree
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    _draining: asyncio.Task[None]

    @classmethod
    async def start(cls, name: str, argv: Callable[[int], Sequence[str]], cwd: Path, env: Mapping[str, str]) -> Self:
        """Start the program `name` by the command line `argv(port)`, and wait until it has connected.

        Raises `HostsUnavailable`. No process is left after an error or a cancel.
        """
        connection: asyncio.Future[tuple[asyncio.StreamReader, asyncio.StreamWriter]]
        connection = asyncio.get_running_loop().create_future()

        def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if connection.done():  # one program, one connection
                writer.close()
            else:
                connection.set_result((reader, writer))

        server = await asyncio.start_server(connected, "127.0.0.1", 0)
        try:
            tree = await ProcessTree.start(
                argv(server.sockets[0].getsockname()[1]), cwd=cwd, env=env, grace=0, pid_namespace=False
            )
            draining = asyncio.create_task(_drain(name, tree), name=f"output of {name}")
            try:
                waiting: list[asyncio.Future[Any]] = [connection, draining]
                await asyncio.wait(waiting, timeout=CONNECT_TIMEOUT_S, return_when="FIRST_COMPLETED")
                if not connection.done():
                    ended = HostEnded if draining.done() else HostsUnavailable
                    raise ended(f"{name} did not connect ({printed(tree)})", USE_THE_TOOL)
                return cls(name, tree, *connection.result(), draining)
            except BaseException:
                await cancel_all([draining])
                await tree.end()
                raise
        finally:
            server.close()

    async def read(self) -> bytes:
        """Some bytes that the program has sent, or b"" at the end. Raises OSError."""
        return await self.reader.read(CHUNK_BYTES)

    async def write(self, data: bytes) -> None:
        """Send `data`. Raises OSError."""
        self.writer.write(data)
        await self.writer.drain()

    async def end(self) -> None:
        """End the program, with all that it has started."""
        self.writer.close()
        await self.tree.end()
        await shielded(self._draining)


class Host(ABC):
    """One test host, for one run. It has connected; the code that has started it ends it."""

    name: ClassVar[str]  # in messages

    def __init__(self, link: Link, source: str, *, stops: bool, ignored: Collection[str] = ()) -> None:
        """It `stops` at the first failure of a test that `ignored` does not name."""
        self._link, self._source, self._stops, self._ignored = link, source, stops, ignored
        self.cases: dict[str, Case] = {}  # that have ended
        self.failures: list[tuple[str, str]] = []
        self.fault: str | None = None

    @staticmethod
    @abstractmethod
    def command(source: str, port: int) -> list[str]:
        """Starts the host of the assembly `source`, which connects to `port`."""

    @abstractmethod
    async def run(self, cases: Sequence[Case] | None) -> None:
        """Run `cases`, None for all tests; to the first failure, if it `stops` there. Raises `ToolError`."""

    @abstractmethod
    async def discover(self) -> None:
        """Look for the tests, run none, and have the process end by itself. Raises OSError and `ToolError`."""

    def _note_failure(self, name: str, message: str) -> None:
        if not (self._stops and (self.failures or name in self._ignored)):
            self.failures.append((name, message))

    async def _ended(self) -> None:
        """The connection has ended before the run: so does the process."""
        await self._link.tree.exited()
        self.fault = f"{self._link.tree.outcome}: {printed(self._link.tree)}"


class Hosts:
    """Test hosts of one kind.

    Cancelling: a run that is cancelled has ended every process of its host when the cancel is raised.
    """

    def __init__(self, kind: type[Host], env: Mapping[str, str]) -> None:
        self._kind, self._env = kind, env

    async def baseline(self, sources: Sequence[Path], timeout_s: float) -> tuple[Outcome, Sequence[Case]]:
        """Run all tests of the assemblies `sources` without a mutant. Raises `ToolError`."""
        return await self._run([(str(source), None) for source in sources], None, timeout_s)

    async def run(
        self,
        mutant: int | None,
        cases: Sequence[Case],
        timeout_s: float,
        *,
        anew: Collection[str] = (),
        ignored: Collection[str] = (),
    ) -> Outcome:
        """Run `cases` with the mutant of the id `mutant` active, until the first one fails. Raises `ToolError`.

        Without a mutant all of them are run, failing ones too. Of the assemblies `anew` all tests are run that are
        found there, whatever they are with the mutant; failures of tests in `ignored` don't count.
        """
        by_source = groupby(sorted(cases, key=lambda case: case.source), key=lambda case: case.source)
        groups = [(source, None if source in anew else list(group)) for source, group in by_source]
        outcome, _ = await self._run(groups, mutant, timeout_s, ignored)
        return outcome

    async def met_by_discovery(self, source: Path) -> Sequence[int]:
        """The ids of the mutants whose code runs where the tests of the assembly `source` are looked for.

        None are known where the assembly doesn't say. Raises `ToolError`.
        """
        name = f"discovery-{uuid.uuid4().hex}"
        env = {**self._env, COVERAGE_VARIABLE: f"{name}.txt"}
        host = f"{self._kind.name} of {source.name}"
        link = await Link.start(host, partial(self._kind.command, str(source)), source.parent, env)
        try:
            async with at_most(CONNECT_TIMEOUT_S):
                with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                    await self._kind(link, str(source), stops=False).discover()
        finally:
            await link.end()
        files = await in_thread(lambda: [file.read_text() for file in Path(self._env["TMPDIR"]).glob(f"{name}*")])
        return sorted({int(id) for text in files for id in re.findall(r"\d+", text)})

    async def _run(
        self,
        groups: Sequence[tuple[str, Sequence[Case] | None]],
        mutant: int | None,
        timeout_s: float,
        ignored: Collection[str] = (),
    ) -> tuple[Outcome, Sequence[Case]]:
        begun, trees = time.monotonic(), list[ProcessTree]()
        try:
            hosts = await within(
                timeout_s, self._each(groups, mutant, trees, ignored), lambda: trees[-1].thread_times() if trees else {}
            )
        except OutOfTime as late:
            return Outcome(time.monotonic() - begun, timed_out=True, computed=late.computed), ()
        except HostEnded as error:
            return Outcome(time.monotonic() - begun, fault=error.problem), ()
        cases = {id: case for host in hosts for id, case in host.cases.items()}
        failures = [failure for host in hosts for failure in host.failures]
        fault = None if failures else next((host.fault for host in hosts if host.fault), None)
        spent = sum(case.seconds for case in cases.values())
        outcome = Outcome(time.monotonic() - begun, frozenset(cases), spent, failures, fault=fault)
        return outcome, tuple(cases.values())

    async def _each(
        self,
        groups: Sequence[tuple[str, Sequence[Case] | None]],
        mutant: int | None,
        trees: list[ProcessTree],
        ignored: Collection[str],
    ) -> list[Host]:
        """One host after the other, with a mutant up to the first that fails. Appends to `trees` each one's tree."""
        hosts: list[Host] = []
        env = {**self._env, **activation(mutant)}
        for source, chosen in groups:
            name = f"{self._kind.name} of {Path(source).name}"
            link = await Link.start(name, partial(self._kind.command, source), Path(source).parent, env)
            trees.append(link.tree)
            try:
                host = self._kind(link, source, stops=mutant is not None, ignored=ignored)
                await host.run(chosen)
            finally:
                await link.end()
            hosts.append(host)
            if mutant is not None and (host.failures or host.fault):
                break
        return hosts


def printed(tree: ProcessTree) -> str:
    """The stderr of the program in one line. A crash says at one of the two ends what it is."""
    text = " ".join(tree.both_errors.split())
    if len(text) > SHOWN_CHARS:
        text = f"{text[: SHOWN_CHARS // 2]} … {text[-SHOWN_CHARS // 2 :]}"
    return text or "it printed nothing"


async def _drain(name: str, tree: ProcessTree) -> None:
    while data := await tree.read():
        log.debug("%s: %s", name, data.decode("utf-8", "replace").rstrip())
