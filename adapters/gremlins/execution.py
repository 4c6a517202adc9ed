"""TestRunner: runs a test binary in its package's directory, isolated from the user's files, and says how it ended.

Where namespaces are permitted it runs in the module itself, under a layer that drops what it writes. A host for each
run at a time stays, so a run costs a fork of that. Elsewhere it runs in a private copy, one for each run at a time.
"""

from __future__ import annotations

import asyncio
import re
import shlex
import shutil
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from attrs import define, field, frozen

from msp_bridge.adapter import Project
from msp_bridge.concurrency import in_thread, shields
from msp_bridge.isolation.printed import Printed
from msp_bridge.toolkit import (
    Isolation,
    JsonLinesProcess,
    PrivateDirectory,
    Sandbox,
    SandboxPool,
    WarmSandbox,
    own_tmpdir,
)

from .go import Package, overlay_option, running

ALWAYS = ("-test.paniconexit0", "-test.failfast")
LIMITED = 'ulimit -t "$1"; shift; exec "$@"'
LATE = "panic: test timed out after "  # go's own limit, with the exit code of a panic
PANICKED = 2
KILLED = (-9, 137)  # by SIGKILL, as the kernel does at the limit of CPU time
FAILED = re.compile(r"^--- FAIL: (\S+)", re.MULTILINE)
BEGUN = re.compile(r"^=== RUN   ([^\s/]+)", re.MULTILINE)
ENDED = re.compile(r"^--- \w+: (\S+)", re.MULTILINE)
FATAL = re.compile(r"^(?:panic|fatal error|runtime): .*", re.MULTILINE)
REASON = re.compile(rf"{FATAL.pattern}|^\s+\S+\.go:\d+: .*", re.MULTILINE)
WANTED = r"--- |=== RUN   [^\s/]+$|panic: |fatal error: "  # lines of the middle of a long output that are read
OF_TEST = re.compile(r"^(?:=== \w+ +|--- \w+: )([^\s/]+)", re.MULTILINE)  # what follows, up to the next, is of it
SHOWN_CHARS = 1000  # of a reason

Host: TypeAlias = WarmSandbox[PrivateDirectory, JsonLinesProcess]  # in whose world commands run, one at a time


@frozen
class Outcome:
    """The end of a run of a test binary."""

    code: int | None  # None: it was ended at the limit by the clock
    printed: str
    seconds: float

    @property
    def timed_out(self) -> bool:
        """Whether it was ended at a limit."""
        return self.code is None or self.code in KILLED or (self.code == PANICKED and LATE in self.printed)

    @property
    def failed(self) -> tuple[str, ...]:
        """The tests that failed. Where the process ended without a word of them: the tests that had begun."""
        found = FAILED.findall(self.printed)
        if not found:
            ended = set(ENDED.findall(self.printed))
            found = [test for test in BEGUN.findall(self.printed) if test not in ended][-1:]
        return tuple(dict.fromkeys(found))

    @property
    def reason(self) -> str:
        """The line that is about the first failure; where none is named, why the process ended, or the last line."""
        if named := FAILED.search(self.printed):
            return self.reason_of(named[1])
        found = FATAL.search(self.printed)  # which may come while another test runs than the one that has begun last
        lines = self.printed.strip().splitlines() or [f"exit code {self.code}"]
        return (found[0] if found else lines[-1]).strip()[:SHOWN_CHARS]

    def reason_of(self, test: str) -> str:
        """The line of the output that is about the failure of `test`; where it printed none, that it failed."""
        _, *parts = OF_TEST.split(self.printed)
        own = "".join(text for name, text in zip(parts[::2], parts[1::2], strict=True) if name == test)
        found = REASON.search(own)
        return (found[0] if found else f"{test} failed").strip()[:SHOWN_CHARS]

    @property
    def tests_completed(self) -> int | None:
        """How many tests have come to their end; None where only failures are printed."""
        return len(ENDED.findall(self.printed)) if BEGUN.search(self.printed) else None


@frozen
class Edit:
    """The mutated file, for commands of go that tests run themselves."""

    texts: Mapping[str, bytes]  # by paths relative to the module
    flags: str  # GOFLAGS without it
    place: Path  # a directory to be made

    def environment(self, root: Path) -> dict[str, str]:
        """The variables that make go read the texts for the files of `root`. Blocks."""
        shutil.rmtree(self.place, ignore_errors=True)  # of an earlier run with the same mutant
        option = shlex.quote(overlay_option(self.place, root, self.texts))
        return {"GOFLAGS": f"{self.flags} {option}".strip()}


@define
class TestRunner:
    """Runs test binaries of one module, those of `directory`, which they may write."""

    project: Project
    isolation: Isolation = field(init=False)
    directory: Path = field(factory=lambda: Path(tempfile.mkdtemp(prefix="msp-bridge-go-")), init=False)
    _copies: SandboxPool[Sandbox, Any] = field(init=False)
    _hosts: SandboxPool[PrivateDirectory, JsonLinesProcess] = field(
        factory=lambda: SandboxPool(PrivateDirectory), init=False
    )

    def __attrs_post_init__(self) -> None:
        self.isolation = Isolation.of("gremlins", self.project.root, network=False)
        self._copies = SandboxPool(partial(Sandbox.claim, self.project.cache, self.project.root))

    async def run(
        self,
        package: Package,
        argv: Sequence[str],
        *,
        edit: Edit | None = None,
        seconds: float | None = None,
        cpu_seconds: int | None = None,
    ) -> Outcome:
        """Run `argv` in the directory of `package`; commands of go that it runs see the `edit`.

        The limits are of the clock, and of the CPU time of each process. Raises `ToolError`.
        """
        if cpu_seconds is not None:
            argv = ["sh", "-c", LIMITED, "sh", str(cpu_seconds), *argv]
        await self.isolation.probe()
        if self.isolation.is_on:
            env = {} if edit is None else await in_thread(edit.environment, self.isolation.root)
            return await self._isolated(self.isolation.root / package.directory, argv, env, seconds)
        async with self._copies.lease() as warm, own_tmpdir() as temporary:
            await warm.refresh()
            env = {} if edit is None else await in_thread(edit.environment, warm.sandbox.path)
            return await _in_copy(warm.sandbox.path / package.directory, argv, {**temporary, **env}, seconds)

    async def _isolated(self, cwd: Path, argv: Sequence[str], env: Mapping[str, str], seconds: float | None) -> Outcome:
        question = {"command": list(argv), "cwd": str(cwd), "env": dict(env), "seconds": seconds, "wanted": WANTED}
        async with self._hosts.lease() as host:  # after a failure or a cancel the command has ended with its host
            process = await host.process.get(partial(self._started, host), self.isolation.wanted)
            await in_thread(self.isolation.note, host.sandbox.path)
            answer = await process.ask(question)
        return Outcome(answer["code"], answer["printed"], answer["seconds"])

    async def _started(self, host: Host) -> JsonLinesProcess:
        await host.refresh()
        root = self.isolation.root
        command = await in_thread(self.isolation.command, root, (), [self.directory], host.sandbox.path)
        return await JsonLinesProcess.start(command, name="the host of Go tests", cwd=root)

    @shields
    async def aclose(self) -> None:
        """End the hosts, delete the directory, and let other bridges have the copies."""
        await self._hosts.aclose()
        await self._copies.aclose()
        await in_thread(shutil.rmtree, self.directory, True)


async def _in_copy(cwd: Path, argv: Sequence[str], env: Mapping[str, str | None], seconds: float | None) -> Outcome:
    began, printed = time.monotonic(), Printed(WANTED)
    async with running(argv, cwd, env) as tree:
        try:
            async with asyncio.timeout(seconds):
                while piece := await tree.read():
                    printed.add(piece)
                code: int | None = await tree.exited()
        except TimeoutError:
            code = None
        text = printed.text + tree.errors
    return Outcome(code, text, time.monotonic() - began)


def only(tests: Iterable[str]) -> str:
    """A regular expression for these tests and no others."""
    return f"^({'|'.join(map(re.escape, tests))})$"
