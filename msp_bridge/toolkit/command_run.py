"""CommandRun: one run of a command, how it ended, and what it printed; places, where runs happen one at a time.

A command that writes into the project runs in a copy, which `Isolation` puts at the project's own path where it can.
The command then knows the copy by the project's path: `RunPlace.seen`.
"""

from __future__ import annotations

import codecs
import contextlib
import json
import os
import shutil
import signal
import time
from collections.abc import AsyncIterator, Callable, Hashable, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

from attrs import define, evolve, field, frozen

from msp_bridge.concurrency import at_most, in_thread
from msp_bridge.processes import ProcessTree
from msp_bridge.reading import digest_of, text_or_empty
from msp_bridge.toolkit.isolation import Around, Isolation, left_out, own_tmpdir
from msp_bridge.toolkit.pool import SandboxPool, WarmSandbox
from msp_bridge.toolkit.sandbox import Sandbox
from msp_bridge.toolkit.slot import make_empty, unwritable

Copy = WarmSandbox[Sandbox, Any]
OBSERVER = Path(__file__).with_name("programs") / "msp_bridge_observer.py"  # the pytest plugin
SHOWN_CHARS = 1000  # characters of output in a message: the first and the last ones
HALF_BYTES = 4 * SHOWN_CHARS  # of the beginning and of the end that are kept
EPOCH_S, SPAN_S = 1 << 29, 1 << 29  # times of files with a mutant: from 1987 to 2004
PYTEST_CODES = {
    2: "pytest was interrupted",
    3: "pytest failed internally",
    4: "pytest couldn't start: a conftest.py can't be imported, or its options are wrong",
    5: "pytest found no tests",
}
Files = Mapping[str, tuple[str | None, bytes]]  # path to the digest it must have (None: any), and the content instead


@define(eq=False)
class RunPlace:
    """Where one run happens: in the project, or in a private copy of it, which is kept for later runs."""

    root: Path  # of the project, or of its private copy
    directory: Path  # private, outside the project, and empty when the place was renewed
    isolation: Isolation | None = None  # of the copy
    copy: Copy | None = None
    request: object = None  # for which it was renewed
    is_clean: bool = False  # since then all runs have ended by themselves
    _proven: tuple[object, Hashable] = (None, None)
    _left_out: Sequence[str] = field(default=(), init=False)

    @property
    def isolated(self) -> Isolation | None:
        """The isolation of the next run; None: it runs in the copy where it lies, or in the project."""
        return self.isolation if self.isolation is not None and self.isolation.is_on else None

    @property
    def seen(self) -> Path:
        """The root as the next run knows it."""
        return self.root if self.isolated is None else self.isolated.root

    @property
    def outside(self) -> RunPlace:
        """The same place without isolation."""
        return evolve(self, isolation=None)

    @property
    def proven(self) -> Hashable:
        """The last proof that was made in this copy (`CommandProof`); None once the copy was made anew."""
        identity, proof = self._proven
        return proof if self.copy is not None and identity == self.copy.sandbox.identity else None

    @proven.setter
    def proven(self, proof: Hashable) -> None:
        self._proven = (None if self.copy is None else self.copy.sandbox.identity, proof)

    async def renew(self) -> None:
        """Make the copy equal to the project as it is now, and undo what runs have written. Raises `ToolError`."""
        await in_thread(make_empty, self.directory)
        if self.copy is not None:
            await self.copy.refresh()
        if self.isolation is not None:
            self._left_out = await in_thread(left_out, self.isolation.root, self.root)
        self.is_clean = True

    @contextlib.asynccontextmanager
    async def running(
        self, argv: Sequence[str], env: Mapping[str, str | None] | None = None
    ) -> AsyncIterator[ProcessTree]:
        """Run `argv` here, isolated or with temporary files of its own; it ends with the block."""
        isolation, changes = self.isolated, dict(env or {})
        async with contextlib.AsyncExitStack() as stack:
            if isolation is None:
                changes |= await stack.enter_async_context(own_tmpdir())
                # Python tests that reach the user's tree are refused when they have: they leave no bytecode there.
                changes.setdefault("PYTHONDONTWRITEBYTECODE", "1")
            else:
                around = Around(self._left_out)
                argv = await in_thread(isolation.command, self.root, argv, [self.directory], None, around)
            tree = ProcessTree.running(argv, cwd=self.root, env=changes, shell_status=isolation is not None)
            yield await stack.enter_async_context(tree)
            if isolation is not None:
                await in_thread(isolation.note, self.root.parent)


class RunPlaces:
    """The places of one project. Each belongs to one run at a time, whichever bridge runs it."""

    def __init__(self, root: Path, claim: Callable[[], Sandbox], *, max_idle: int | None = None) -> None:
        self._root = root
        self._copies: SandboxPool[Sandbox, Any] = SandboxPool(claim, max_idle=max_idle)

    @contextlib.asynccontextmanager
    async def lease(self, isolation: Isolation | None, request: object = None) -> AsyncIterator[RunPlace]:
        """A place. With `isolation` it is a copy of the project as it is now; else the project itself.

        A copy that was renewed for the same `request` is not renewed again. Raises `ToolError` for want of room.
        """
        async with self._copies.lease() as copy:
            directory = copy.sandbox.path.parent / "msp-bridge-report"
            if isolation is None:
                place = RunPlace(self._root, directory)
            else:
                await isolation.probe()
                place = copy.noted or RunPlace(copy.sandbox.path, directory, copy=copy)
                copy.noted, place.isolation = place, isolation
            if request is None or place.request is not request or not place.is_clean:
                await place.renew()
                place.request = request
            yield place

    async def aclose(self) -> None:
        """Let other bridges have the copies."""
        await self._copies.aclose()


class Stale(Exception):
    """A file isn't what the mutant was made for."""


@define
class ToolOutput:
    """The beginning and the end of what a tool printed."""

    is_text: bool = True  # all of it is UTF-8
    _head: bytes = b""
    _tail: bytes = b""
    _decoder: codecs.IncrementalDecoder = field(factory=codecs.getincrementaldecoder("utf-8"))

    def add(self, data: bytes) -> None:
        """Keep what may be shown of it."""
        room = HALF_BYTES - len(self._head)
        self._head += data[:room]
        self._tail = (self._tail + data[room:])[-HALF_BYTES:] if room < len(data) else self._tail
        if self.is_text:
            try:
                self._decoder.decode(data)
            except UnicodeDecodeError:
                self.is_text = False

    def __str__(self) -> str:
        """Decoded, without white space around it."""
        return (self._head + self._tail).decode("utf-8", "replace").strip()


def shown(text: str) -> str:
    """The beginning, where the cause often is, and the end."""
    half = SHOWN_CHARS // 2
    return text if len(text) <= SHOWN_CHARS else f"{text[:half]} … {text[-half:]}"


@frozen
class CommandRun:
    """One run of a command that runs tests."""

    code: int | None  # None: it was ended at its time limit
    duration_ms: float
    printed: str
    is_text: bool = True  # stdout is UTF-8
    observed: bool = False  # pytest ran, with our plugin, which says:
    failed: tuple[str, ...] = ()  # the tests that failed
    completed: int | None = None  # how many tests ran, when pytest came to its end
    outside: frozenset[str] = frozenset()  # the files of modules that were imported from the user's tree
    failures: Mapping[str, str] = field(factory=dict)  # failed tests, modules that can't be imported: their messages

    @classmethod
    async def of(
        cls,
        place: RunPlace,
        argv: Sequence[str],
        env: Mapping[str, str | None],
        *,
        limit_s: float | None = None,
        observed: bool = False,
    ) -> CommandRun:
        """Run `argv` for at most `limit_s`. `observed`: with the pytest plugin, which any pytest in it loads.

        Raises `ToolError` when there is no such program.
        """
        report = place.directory / "report.jsonl"
        if observed:
            env = {**env, **await in_thread(_observing, place, env, report)}
        was_clean, place.is_clean = place.is_clean, False
        code, said, began = None, ToolOutput(), time.perf_counter()
        async with place.running(argv, env) as tree:
            async with at_most(limit_s):
                while data := await tree.read():
                    said.add(data)
                code = await tree.exited()
            duration_ms = (time.perf_counter() - began) * 1000
        facts = await in_thread(_facts, report) if observed else {}
        place.is_clean = was_clean and code is not None and code != -signal.SIGKILL
        return cls(code, duration_ms, tree.errors.strip() or str(said), said.is_text, **facts)

    @property
    def passed(self) -> bool:
        """Whether it ended with exit code 0."""
        return self.code == 0

    @property
    def timed_out(self) -> bool:
        """Whether it was ended at its time limit."""
        return self.code is None

    @property
    def was_killed(self) -> bool:
        """Whether some other process killed the tests: perhaps for want of memory."""
        return self.code == -signal.SIGKILL

    @property
    def reason(self) -> str:
        """Why it failed, as the tests say."""
        for name, message in self.failures.items():
            return f"{name}: {message}"
        if self.observed and self.code in PYTEST_CODES:
            return f"{PYTEST_CODES[self.code]} (exit code {self.code}): {shown(self.printed)}".rstrip(": ")
        if self.was_killed:
            return "the tests were killed from outside, twice (for want of memory?)"
        return shown(self.printed) or f"it ended with exit code {self.code}"


@contextlib.asynccontextmanager
async def overwritten(place: RunPlace, files: Files) -> AsyncIterator[None]:
    """The given contents instead of the files' own, which come back with their times.

    A file with a mutant gets a time that follows from its content, from 1987 to 2004, so that no bytecode that was
    compiled from other content of the same size can be taken for its own. A file that may have any digest gets the
    present time, by which programs that build see that it has changed. Raises `Stale` when a file isn't the one that
    was mutated, `ToolError` when one can't be written.
    """
    before: list[tuple[Path, bytes, os.stat_result]] = []
    try:
        await _checked(place, _overwrite, place.root, files, before)
        yield
    finally:
        await _checked(place, _restore, before)


async def _checked(place: RunPlace, function: Any, *arguments: object) -> None:
    try:
        await in_thread(function, *arguments)
    except OSError as error:
        place.is_clean = False
        raise unwritable(place.root.parent, error) from error


def _overwrite(root: Path, files: Files, before: list[tuple[Path, bytes, os.stat_result]]) -> None:
    for path, (digest, content) in files.items():
        file = root / path
        try:
            original, status = file.read_bytes(), file.stat()
        except OSError as error:
            raise Stale(path) from error
        if digest is not None and digest_of(original) != digest:
            raise Stale(path)
        before.append((file, original, status))
        seconds = int(time.time())
        if digest is not None:
            seconds = EPOCH_S + int.from_bytes(blake2b(content, digest_size=4).digest(), "big") % SPAN_S
        seconds += seconds == int(status.st_mtime)
        _write(file, content, seconds * 10**9, seconds * 10**9)


def _restore(before: list[tuple[Path, bytes, os.stat_result]]) -> None:
    for file, original, status in before:
        _write(file, original, status.st_atime_ns, status.st_mtime_ns)


def _write(file: Path, content: bytes, accessed_ns: int, modified_ns: int) -> None:
    """Write a file anew, even where the tests have removed it, and set its times."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    os.utime(file, ns=(accessed_ns, modified_ns))


def _observing(place: RunPlace, env: Mapping[str, str | None], report: Path) -> dict[str, str | None]:
    """Put the plugin where the run finds it: the bridge may be installed in what the copy leaves out."""
    report.unlink(missing_ok=True)
    plugins = place.directory / "plugins"
    plugins.mkdir(exist_ok=True)
    shutil.copyfile(OBSERVER, plugins / OBSERVER.name)
    paths = [env.get("PYTHONPATH", os.environ.get("PYTHONPATH")), str(plugins)]
    source = None if place.isolated or place.copy is None else str(place.copy.sandbox.source)
    return {
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "PYTEST_ADDOPTS": f"{os.environ.get('PYTEST_ADDOPTS', '')} -p {OBSERVER.stem}".strip(),
        "MSP_BRIDGE_REPORT": str(report),
        "MSP_BRIDGE_SOURCE": source,  # isolated, the copy stands there
        "MSP_BRIDGE_OBSERVED": None,
    }


def _facts(report: Path) -> dict[str, Any]:
    """The fields of `CommandRun` that the plugin has reported; a killed pytest may have left half a line."""
    events = []
    for line in text_or_empty(report, "surrogatepass").splitlines():  # empty: no pytest, or it never came so far
        with contextlib.suppress(ValueError):
            events.append(json.loads(line))
    messages = (event for event in events if "message" in event)
    return {
        "observed": any("started" in event for event in events),
        "failed": tuple(dict.fromkeys(event["failed"] for event in events if "failed" in event)),
        "completed": next((event["completed"] for event in events if "completed" in event), None),
        "outside": frozenset(file for event in events for file in event.get("outside", ())),
        "failures": {event.get("failed") or event["uncollected"]: event["message"] for event in messages},
    }
