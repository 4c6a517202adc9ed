"""The client side: requests to a tool that is a JSON-RPC server on its stdin and stdout, as MSP servers are."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from typing import Any, Protocol

from msp_bridge.errors import ToolError
from msp_bridge.jsonrpc.framing import FramingError, TolerantFrameDecoder, frame
from msp_bridge.jsonrpc.messages import Message, notification, request
from msp_bridge.processes import ProcessTree

REMEDY = "try again, or run `msp-bridge doctor`"
SHOWN_CHARS = 500  # characters of what a tool has printed, in an error
STACK_FRAME = "    at "  # begins each line of a stack of Node's and .NET's
EXIT_TIMEOUT_S = 20.0  # between the end of a tool's input or output and its exit, until its descendants are gone too
KILLED = -9  # by SIGKILL: what the tool wrote before says nothing of its end


class ErrorResponse(Exception):
    """The tool answered a request with an error. `str()` is the tool's message; `code` is 0 where it gave none."""

    def __init__(self, error: Any) -> None:
        fields = error if isinstance(error, dict) else {"message": error}
        super().__init__(str(fields.get("message")))
        code = fields.get("code")
        self.code = code if isinstance(code, int) else 0


class ByteSource(Protocol):
    """Where bytes of a tool come from: its stdout (`ProcessTree`), or a connection."""

    async def read(self) -> bytes:
        """Some bytes, or b"" at the end."""


class MessageReader:
    """The messages of the tool called `tool`, among which it may print other things."""

    def __init__(self, source: ByteSource, tool: str) -> None:
        self._source, self._tool = source, tool
        self._decoder = TolerantFrameDecoder()

    @property
    def noise(self) -> str:
        """The end of what was printed between the messages: a log, or the output of a plugin."""
        return self._decoder.noise.decode("utf-8", "replace")

    async def receive(self) -> Message | None:
        """The next message; None at the end of the output. Raises ToolError."""
        data = b""
        while True:
            try:
                message = next(self._decoder.feed(data), None)
            except FramingError as error:
                raise ToolError(f"{self._tool} sent what can't be read ({error})", REMEDY) from None
            if message is not None:
                return message
            data = await self._source.read()
            if not data:
                self._decoder.finish()
                return None

    async def all(self) -> AsyncGenerator[Message, None]:
        """Every message until the end of the output. Raises ToolError."""
        while (message := await self.receive()) is not None:
            yield message


class JsonRpcClient:
    """Sends requests to the tool called `tool`, which runs in `tree`; the owner of `tree` ends it.

    Requests: one at a time: the servers of tools run concurrent requests against each other.
    Back-pressure: the output of the tool is read only while somebody awaits the next message.
    Cancelling: closing a generator leaves the request running in the tool. Then `cancel`, or end the tree.
    Errors: ErrorResponse when the tool answers with an error; ToolError when it ends without a response. The reason is
    the same whether its end shows first when a request is written or when the response is read.
    """

    def __init__(self, tree: ProcessTree, tool: str) -> None:
        self._tree, self._tool = tree, tool
        self.reader = MessageReader(tree, tool)
        self._last_id = 0
        self._busy = False

    @property
    def busy(self) -> bool:
        """Whether the last request has no response yet. Then no other can be sent."""
        return self._busy

    async def request(self, method: str, params: dict[str, Any]) -> Any:
        """Send a request and return its result. Raises ErrorResponse and ToolError."""
        async with contextlib.aclosing(self.stream(method, params)) as messages:
            async for message in messages:
                if "result" in message:
                    return message["result"]
        raise AssertionError("the last message is a result")

    async def stream(self, method: str, params: dict[str, Any]) -> AsyncGenerator[Message, None]:
        """Send a request and yield every message until its response, which is the last.

        Raises ErrorResponse and ToolError.
        """
        await self.send(method, params)
        async with contextlib.aclosing(self.until_response()) as messages:
            async for message in messages:
                yield message

    async def send(self, method: str, params: dict[str, Any]) -> None:
        """Send a request and wait for nothing; read on with `until_response`. Raises ToolError when the tool ended."""
        if self._busy:
            raise RuntimeError(f"{method} was sent to {self._tool} while another request runs")
        self._last_id += 1
        self._busy = True
        try:
            await self._tree.write(frame(request(self._last_id, method, params)))
        except ToolError:
            raise await self._ended("has closed its input, and goes on") from None

    async def until_response(self) -> AsyncGenerator[Message, None]:
        """The messages until the response, which is the last; may be closed and called again.

        Raises ErrorResponse and ToolError.
        """
        async with contextlib.aclosing(self.reader.all()) as messages:
            async for message in messages:
                if self._is_response(message) and "error" in message:
                    raise ErrorResponse(message["error"])
                yield message
                if not self._busy:
                    return
        raise await self._ended("has closed its output, and goes on")

    async def _ended(self, otherwise: str) -> ToolError:
        """The error for a tool that can't be spoken with any more; `otherwise` is what it does if it has not ended."""
        try:
            async with asyncio.timeout(EXIT_TIMEOUT_S):
                await self._tree.exited()
        except TimeoutError:
            return ToolError(f"{self._tool} {otherwise}", REMEDY)
        said = "" if self._tree.returncode == KILLED else _excerpt(self._tree.errors)
        how = ": ".join(filter(None, [self._tree.outcome, said]))
        return ToolError(f"{self._tool} ended unexpectedly ({how})", REMEDY)

    async def cancel(self, timeout_s: float) -> bool:
        """Cancel the request that is still running. Returns False when it does not end in time: then end the tree."""
        try:
            async with asyncio.timeout(timeout_s):
                if self._busy:
                    await self._tree.write(frame(notification("$/cancelRequest", {"id": self._last_id})))
                while self._busy and (message := await self.reader.receive()) is not None:
                    self._is_response(message)
        except (TimeoutError, ToolError):
            return False
        return not self._busy

    def _is_response(self, message: Message) -> bool:
        """Whether `message` is the response to the last request; with it, the next can be sent."""
        if message.get("id") != self._last_id or "method" in message:
            return False
        self._busy = False
        return True


def _excerpt(errors: str) -> str:
    """The last whole lines that are short enough together, without the frames of a stack: its message is above."""
    lines = [line for line in errors.strip().splitlines() if not line.startswith(STACK_FRAME)]
    first = len(lines) - 1
    while first > 0 and len("\n".join(lines[first - 1 :])) <= SHOWN_CHARS:
        first -= 1
    return "\n".join(lines[max(first, 0) :])[:SHOWN_CHARS].strip()
