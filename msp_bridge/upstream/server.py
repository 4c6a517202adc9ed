"""UpstreamServer: an MSP server that a tool has, asked for one thing at a time."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from typing import Any

from msp_bridge.errors import ToolError
from msp_bridge.processes import ProcessTree
from msp_bridge.upstream.frames import Frames, Message, framed


class Refused(Exception):
    """The tool answered with an error. The text is the tool's own."""


class UpstreamServer:
    """Speaks with the tool called `tool`, which runs in `tree`; the tree stays its owner's to end.

    Requests: one at a time, for such servers run concurrent ones against each other.
    Back-pressure: the tool is read only while somebody awaits the next message.
    Cancelling: closing a conversation leaves the tool in the middle of it. Then `cancel`, or end the tree.
    """

    def __init__(self, tree: ProcessTree, tool: str) -> None:
        self._tree, self._tool = tree, tool
        self.frames = Frames(tree, tool)
        self._last = 0
        self._busy = False

    @property
    def busy(self) -> bool:
        """Whether a request has had no answer yet. Then the tool can't be asked for anything else."""
        return self._busy

    async def ask(self, method: str, params: dict[str, Any]) -> Any:
        """The result. Raises Refused, and ToolError when the tool ends without an answer."""
        async with contextlib.aclosing(self.conversation(method, params)) as messages:
            async for message in messages:
                if "result" in message:
                    return message["result"]
        raise AssertionError("a conversation ends with a result or an error")

    async def conversation(self, method: str, params: dict[str, Any]) -> AsyncGenerator[Message, None]:
        """All that the tool says until its answer, which is the last. Raises Refused and ToolError."""
        await self.begin(method, params)
        async with contextlib.aclosing(self.rest()) as messages:
            async for message in messages:
                yield message

    async def begin(self, method: str, params: dict[str, Any]) -> None:
        """Ask; `rest` has what the tool says to it. Raises ToolError when the tool has ended."""
        if self._busy:
            raise RuntimeError(f"{self._tool} is asked for {method} while it is busy")
        self._last += 1
        self._busy = True
        await self._tree.write(framed({"id": self._last, "method": method, "params": params}))

    async def rest(self) -> AsyncGenerator[Message, None]:
        """What the tool has yet to say until its answer, which is the last; may be left and called again.

        Raises Refused and ToolError.
        """
        async with contextlib.aclosing(self.frames.all()) as messages:
            async for message in messages:
                if self._answers(message) and "error" in message:
                    raise Refused(_reason(message["error"]))
                yield message
                if not self._busy:
                    return
        await self._tree.exited()
        said = self._tree.errors.strip()[-500:] or f"exit code {self._tree.returncode}"
        raise ToolError(f"{self._tool} ended unexpectedly ({said}): try again, or run `msp-bridge doctor`")

    async def cancel(self, seconds: float) -> bool:
        """Have the tool give up what a closed conversation was about. False: it didn't in that time, end the tree."""
        try:
            async with asyncio.timeout(seconds):
                if self._busy:
                    await self._tree.write(framed({"method": "$/cancelRequest", "params": {"id": self._last}}))
                while self._busy and (message := await self.frames.next()) is not None:
                    self._answers(message)
        except (TimeoutError, ToolError):
            return False
        return not self._busy

    def _answers(self, message: Message) -> bool:
        """Whether it is the answer, with which the tool is free again."""
        if message.get("id") != self._last or "method" in message:
            return False
        self._busy = False
        return True


def _reason(error: Any) -> str:
    return str(error.get("message") if isinstance(error, dict) else error)
