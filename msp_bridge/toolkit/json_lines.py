"""JSON lines with one of the bridge's own programs that runs in another interpreter: the project's Python.

Theory of operation
-------------------
The problem. A program that must import the project's packages can't run in the bridge's process. It runs in an
interpreter over which the bridge has no control: its site-packages may print banners at start, its bytecode may be
damaged, and it may die at any time by any signal.

The protocol. Both directions are lines of JSON objects.

1. The program duplicates its stdin and stdout, points descriptor 0 at the null device and descriptor 1 at stderr, and
   writes `MARK` as a line of its own. What was printed before that line is no answer, and is dropped.
2. When its imports are done it writes `{"id": 0, …}`: the *greeting*. `start` returns then.
3. Each question carries an `"id"`: 1, 2, 3 … Its answer carries the same one. Answers may come in any order.
   A message whose id is null answers no question: it is a *notice*, for `on_notice`.

The invariants.

- A question has exactly one future. It gets the answer, or `ProcessEnded`; it never waits for a process that is gone.
- A question whose future was cancelled stays a question for the program: its answer is dropped when it comes.
- The process is in state *starting*, *open* or *closed*. Only `_listen` reads, and its end is the only way from open
  to closed, apart from `close` and a time limit. Every pending future fails there, so nobody is forgotten.
- The exit code and the tail of stderr are complete before a future fails: `_listen` waits for the end of the process
  after the end of its output. An error that is raised on a failed write would come before the traceback that explains
  it; therefore `post` never fails on a broken pipe. The end of the output follows and says why.

Damaged bytecode. Python before 3.14 leaves a truncated .pyc file when the disk is full, and fails on it for ever
after (https://github.com/python/cpython/issues/126606). When the start fails with that symptom and the program has a
directory for bytecode of its own, that is deleted and the start is tried once more. So is the start of a
program that was killed by a signal, as where memory is short.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

from msp_bridge.concurrency import in_thread, shielded
from msp_bridge.errors import ToolError
from msp_bridge.processes import ProcessTree

log = logging.getLogger(__name__)

MARK = b"msp-bridge: json lines"  # the line after which the program's answers begin
START_TIMEOUT_S = 60.0  # until the greeting: imports of a large project from a cold disk
EXIT_TIMEOUT_S = 2.0  # between the end of the program's output and its exit; then it is ended
DAMAGED_BYTECODE = "marshal data"  # EOFError: marshal data too short; ValueError: bad marshal data
TAIL_LINES = 3  # of stderr, in an error message
TAIL_CHARS = 1000
REMEDY = "try again; if it happens again, run `msp-bridge doctor`"

Answer = dict[str, Any]


class ProcessEnded(ToolError):
    """The program has ended, or was ended, before it answered. `killed`: by a signal, and not by us."""

    def __init__(self, problem: str, remedy: str, *, killed: bool = False) -> None:
        super().__init__(problem, remedy)
        self.killed = killed


class JsonLinesProcess:
    """One process, and the answers that are still to come.

    Cancelling: a cancelled `ask` leaves the process running. Its answer is dropped when it comes.
    Back-pressure: none for questions: the caller bounds how many are pending. Answers are read as they come.
    Resource handling: the caller that starts it closes it. `start` ends the process itself when it fails or is
    cancelled. Errors: `ProcessEnded` from `ask` and from the futures of `post`.
    """

    def __init__(self, tree: ProcessTree, name: str) -> None:
        self._tree, self._name = tree, name
        self._pending: dict[int, asyncio.Future[Answer]] = {}
        self._last_id = 0
        self._closed = False
        self._fault = ""  # why the process was ended by us, or is not listened to any longer
        self._closing: asyncio.Task[None] | None = None
        self.on_notice: Callable[[Answer], None] = lambda _: None  # gets what answers no question: its id is null
        self._greeting: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._pending[0] = self._greeting
        self._listening = asyncio.create_task(self._listen(), name=f"answers of {name}")

    @classmethod
    async def start(
        cls,
        argv: Sequence[str | os.PathLike[str]],
        *,
        name: str,
        cwd: Path,
        env: Mapping[str, str | None] | None = None,
        bytecode: Path | None = None,
    ) -> JsonLinesProcess:
        """Start `argv` in `cwd`, and wait for its greeting.

        `name` names the program in messages: "mutmut's worker". `env` holds changes to our own environment; None
        removes a variable. `bytecode`: where the program's bytecode is kept. Raises `ToolError` when the program can't
        be started, `ProcessEnded` when it ends or does not greet in time.
        """
        try:
            return await cls._start(argv, name, cwd, env)
        except ProcessEnded as error:
            if bytecode is not None and is_damaged_bytecode(error.problem):
                await in_thread(forget_bytecode, bytecode)
            elif error.killed:
                log.warning("%s; it is started again", error.problem)
            else:
                raise
        return await cls._start(argv, name, cwd, env)

    @classmethod
    async def _start(
        cls, argv: Sequence[str | os.PathLike[str]], name: str, cwd: Path, env: Mapping[str, str | None] | None
    ) -> JsonLinesProcess:
        process = cls(await ProcessTree.start(argv, cwd=cwd, env=env, stdin=True), name)
        try:
            async with asyncio.timeout(START_TIMEOUT_S):
                await asyncio.shield(process._greeting)
        except TimeoutError:
            process._fault = f"{name} did not start within {START_TIMEOUT_S:.0f} s and was ended"
            await process.close()
            raise ProcessEnded(process._ending(), REMEDY) from None
        except BaseException:
            await process.close()
            raise
        return process

    @property
    def greeting(self) -> Answer:
        """The program's first message, which says whatever it wants to say at the start."""
        return self._greeting.result()

    @property
    def closed(self) -> bool:
        """Whether no question will be answered any more."""
        return self._closed

    @property
    def pid(self) -> int:
        """The pid of the topmost process of the tree (`ProcessTree.pid`)."""
        return self._tree.pid

    def cpu_seconds(self) -> float:
        """The CPU time that the program and all below it have taken. Blocks for some ms."""
        return sum(self._tree.thread_times().values())

    def post(self, question: Mapping[str, Any]) -> tuple[int, asyncio.Future[Answer]]:
        """Send a question without waiting: its id, and the future of its answer. See `ProcessEnded`."""
        self._last_id += 1
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._pending[self._last_id] = answer
        if self._closed:
            self._fail_pending()
        else:
            self._tree.post(json.dumps({"id": self._last_id, **question}).encode("ascii") + b"\n")
        return self._last_id, answer

    def works_on(self, id: int) -> bool:
        """Whether the question `id` is the oldest without an answer."""
        return next(iter(self._pending), None) == id

    async def ask(self, question: Mapping[str, Any]) -> Answer:
        """The answer to `question`; raises `ProcessEnded`."""
        _, answer = self.post(question)
        return await answer

    async def close(self) -> None:
        """End the process and all below it. Idempotent. A cancel is raised when that is done."""
        self._closed = True
        if self._closing is None:
            self._closing = asyncio.create_task(self._close(), name=f"end of {self._name}")
        await shielded(self._closing)

    async def _close(self) -> None:
        await self._tree.end()
        await self._listening

    async def _listen(self) -> None:
        try:
            async with aclosing(self._tree.lines(after=MARK)) as lines:
                async for line in lines:
                    self._take(line)
        except (ToolError, ValueError) as error:
            self._fault = self._fault or f"{self._name} can't be understood and was ended: {error}"
        finally:
            self._closed = True
            await self._ended()
            self._fail_pending()

    def _take(self, line: bytes) -> None:
        try:
            answer = json.loads(line)
            question = answer["id"]
        except (ValueError, TypeError, LookupError):
            raise ValueError(f"it wrote {line[:80].decode('utf-8', 'replace')!r}") from None
        if question is None:
            self.on_notice(answer)
            return
        future = self._pending.pop(question, None)
        if future is not None and not future.done():
            future.set_result(answer)

    async def _ended(self) -> None:
        """Wait until the exit code is known and stderr is complete."""
        if not self._fault and self._closing is None:
            try:
                async with asyncio.timeout(EXIT_TIMEOUT_S):
                    await self._tree.exited()
            except TimeoutError:
                self._fault = f"{self._name} closed its output without ending, and was ended"
        await self._tree.end()

    def _fail_pending(self) -> None:
        pending = [future for future in self._pending.values() if not future.done()]
        self._pending.clear()
        for future in pending:
            future.set_exception(ProcessEnded(self._ending(), REMEDY, killed=self._killed))
            future.exception()  # marked as retrieved: its asker may be gone

    @property
    def _killed(self) -> bool:
        return not self._fault and self._closing is None and (self._tree.returncode or 0) < 0

    def _ending(self) -> str:
        printed = "; ".join(line.strip() for line in self._tree.errors.strip().splitlines()[-TAIL_LINES:])
        if self._fault:
            what = self._fault
        elif self._closing is not None:
            return f"{self._name} was closed"
        else:
            what = f"{self._name} ended ({self._tree.outcome})"
        return f"{what}: {printed[-TAIL_CHARS:]}" if printed else what


def is_damaged_bytecode(text: str) -> bool:
    """Whether a traceback shows bytecode that a full disk has cut short."""
    return DAMAGED_BYTECODE in text


def forget_bytecode(directory: Path) -> None:
    """Delete a directory of bytecode. Blocks."""
    shutil.rmtree(directory, ignore_errors=True)
