"""Channel: questions and answers in JSON lines with a part of `target` that runs under the project's interpreter."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any

from msp_bridge.adapter import ToolError
from msp_bridge.processes import ProcessTree

from .bytecode import forgotten

TARGET = Path(__file__).with_name("target")
MARK = b"msp-bridge: mutmut"  # comes before the first answer: whatever an environment prints until then is no answer
GREETING = 60.0  # s to import mutmut

Answer = dict[str, Any]


class ChannelClosed(ToolError):
    """The process at the other end has ended, or was ended."""


class Channel:
    """One process, and the answers that are still to come.

    A question whose asker is cancelled stays a question: its answer is dropped when it comes.
    """

    def __init__(self, tree: ProcessTree, part: str) -> None:
        self._tree, self._part = tree, part
        self._pending: dict[int, asyncio.Future[Answer]] = {}
        self._last = -1
        self._closed = False
        self._fault = ""  # what keeps us from listening any longer
        _, self._ready, _ = self.post({})  # its answer comes when everything has been imported
        self._listening = asyncio.create_task(self._listen(), name=f"mutmut {part}")

    @classmethod
    async def open(
        cls, python: Path, part: str, options: Mapping[str, Any], *, cwd: Path, env: Mapping[str, str | None]
    ) -> Channel:
        """Start `part` of `target` in `cwd`; raises ToolError when it can't be started, and ends it then."""
        try:
            return await cls._open(python, part, options, cwd, env)
        except ChannelClosed as error:
            if not await asyncio.to_thread(forgotten, env, error):
                raise
        return await cls._open(python, part, options, cwd, env)

    @classmethod
    async def _open(
        cls, python: Path, part: str, options: Mapping[str, Any], cwd: Path, env: Mapping[str, str | None]
    ) -> Channel:
        argv = [str(python), str(TARGET), part, json.dumps(options)]
        channel = cls(await ProcessTree.start(argv, cwd=cwd, env=env, stdin=True), part)
        try:
            async with asyncio.timeout(GREETING):
                await asyncio.shield(channel._ready)
        except BaseException as error:
            await channel.close()
            if isinstance(error, TimeoutError):
                raise ToolError(
                    f"mutmut's {part} process has not started within {GREETING:.0f} s: "
                    f"see whether `{python} -c 'import mutmut'` ends"
                ) from None
            raise
        return channel

    @property
    def closed(self) -> bool:
        """Whether nobody answers any more."""
        return self._closed

    @property
    def pid(self) -> int:
        """Names the process: of its topmost one."""
        return self._tree.pid

    def post(self, question: Mapping[str, Any]) -> tuple[int, asyncio.Future[Answer], bytes]:
        """A question's id, its answer to be, and its line, still to be sent with `send`."""
        self._last += 1
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._pending[self._last] = future
        if self._closed:
            self._give_up()
        return self._last, future, json.dumps({"id": self._last, **question}).encode() + b"\n"

    async def send(self, line: bytes) -> None:
        """Raises ChannelClosed."""
        try:
            await self._tree.write(line)
        except ToolError as error:
            self._closed = True  # the end of its output may take a moment to show
            raise ChannelClosed(str(error)) from error

    async def ask(self, question: Mapping[str, Any]) -> Answer:
        """Send and wait; raises ChannelClosed."""
        _, future, line = self.post(question)
        await self.send(line)
        return await future

    async def close(self) -> None:
        """End the process and all below it; idempotent."""
        self._closed = True
        await self._tree.end()
        await self._listening

    async def _listen(self) -> None:
        try:
            async with aclosing(self._tree.lines(after=MARK)) as lines:
                async for line in lines:
                    answer = json.loads(line)
                    future = self._pending.pop(answer["id"], None)
                    if future is not None and not future.done():
                        future.set_result(answer)
        except ToolError as error:
            self._fault = str(error)
        finally:
            self._closed = True
            self._give_up()

    def _give_up(self) -> None:
        tail = [self._fault] if self._fault else self._tree.errors.strip().splitlines()[-1:]
        reason = f"mutmut's {self._part} process has ended" + (f": {tail[0]}" if tail else "")
        for future in self._pending.values():
            if not future.done():
                future.set_exception(ChannelClosed(f"{reason}; try again, or run `msp-bridge doctor`"))
                future.exception()  # the asker may be gone
        self._pending.clear()
