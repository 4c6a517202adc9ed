"""UpstreamServer: an MSP server that a tool has, asked for one thing at a time."""

from __future__ import annotations

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
    Cancelling: closing a conversation leaves the tool in the middle of it: end the tree.
    """

    def __init__(self, tree: ProcessTree, tool: str) -> None:
        self._tree, self._tool = tree, tool
        self.frames = Frames(tree, tool)
        self._last = 0

    async def ask(self, method: str, params: dict[str, Any]) -> Any:
        """The result. Raises Refused, and ToolError when the tool ends without an answer."""
        async with contextlib.aclosing(self.conversation(method, params)) as messages:
            async for message in messages:
                if "result" in message:
                    return message["result"]
        raise AssertionError("a conversation ends with a result or an error")

    async def conversation(self, method: str, params: dict[str, Any]) -> AsyncGenerator[Message, None]:
        """All that the tool says until its answer, which is the last. Raises Refused and ToolError."""
        self._last += 1
        id = self._last
        await self._tree.write(framed({"id": id, "method": method, "params": params}))
        async with contextlib.aclosing(self.frames.all()) as messages:
            async for message in messages:
                if message.get("id") == id and "error" in message:
                    raise Refused(str(message["error"].get("message")))
                yield message
                if message.get("id") == id:
                    return
        await self._tree.exited()
        said = self._tree.errors.strip()[-500:] or f"exit code {self._tree.returncode}"
        raise ToolError(f"{self._tool} ended unexpectedly ({said}): try again, or run `msp-bridge doctor`")
