"""Serving agents' clients: the SDK's own server, for one client on stdin and stdout, or for those of `http_server`.

Theory of operation
-------------------
The SDK (`mcp`) has the protocol: versions, the handshake, requests, progress, cancelling. Three things are ours: how a
call runs (`running_calls`), and these two.

*The streams.* The SDK's `stdio_server` reads stdin in a thread that nobody can interrupt: at SIGTERM it would wait for
the client's next line. `StdioStream` doesn't, and keeps stray prints off stdout. One message is one line of JSON. The
SDK starts a task for each request, however many come: `_Lines` counts those without an answer, and answers one too many
by an error itself. That waits for a client which doesn't read, so nothing more is read from it.

*The errors.* What the agent can put right is a tool's result with `is_error`: the model reads it. The SDK's protocol
errors are for clients: an unknown tool, resource or prompt.
"""

import contextlib
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp import MCPError
from mcp.server import Server, ServerRequestContext
from mcp.shared.message import SessionMessage
from mcp_types import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    PARSE_ERROR,
    CallToolRequestParams,
    CallToolResult,
    ErrorData,
    GetPromptRequestParams,
    GetPromptResult,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    ListPromptsResult,
    ListResourcesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    RequestId,
    Resource,
    TextContent,
    TextResourceContents,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError
from pydantic_core import from_json

from msp_bridge import __version__
from msp_bridge.concurrency import meanwhile
from msp_bridge.errors import BridgeError
from msp_bridge.jsonrpc.connection import MAX_OPEN
from msp_bridge.jsonrpc.messages import ErrorCode
from msp_bridge.jsonrpc.streams import ByteStream
from msp_bridge.jsonrpc.trace import PeerTrace
from msp_bridge.mcp.answers import REPORT, error_text
from msp_bridge.mcp.calls import Calls
from msp_bridge.mcp.running_calls import CallProgress, RunningCalls
from msp_bridge.mcp.tools import INSTRUCTIONS, RAISE_SCORE, TOOLS, prompt_of
from msp_bridge.text import visible
from msp_bridge.workspace.open_workspaces import OpenWorkspaces

log = logging.getLogger(__name__)

Context = ServerRequestContext[Any]

# Bytes of a message: requests have some hundred, one with 2,000 ids 40 KiB. The SDK keeps each fault of a message. They
# take up to 600 times its bytes.
MAX_MESSAGE = 256 * 1024
MAX_FAULTS = 5  # that are named in an answer
MAX_FAULT = 200  # characters
JSON = "application/json"
SESSION_HEADER = "mcp-session-id"


class AgentServer:
    """Answers clients: `serve` the only one, or `protocol` and `running` any number. All know the same results.

    Cancelling: `serve` ends each call that runs, and returns when its processes have ended.
    """

    def __init__(self, root: Path, workspaces: OpenWorkspaces) -> None:
        self._root, self._calls = root, Calls(root, workspaces)
        self.running = RunningCalls()
        self.protocol: Server[Any] = Server(
            "msp-bridge",
            version=__version__,
            title="Mutation testing",
            instructions=INSTRUCTIONS,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_read_resource=self._read_resource,
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._get_prompt,
        )

    async def serve(self, stream: ByteStream, trace: PeerTrace | None = None) -> int:
        """Serve until the client leaves; the exit code is always 0."""
        inbound, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        write, outbound = anyio.create_memory_object_stream[SessionMessage](0)
        lines = _Lines(stream, trace)
        async with (
            contextlib.aclosing(self),
            meanwhile(lines.receive(inbound, write.clone()), "messages of the client") as receiving,
            meanwhile(lines.send(outbound, receiving.cancel), "messages to the client"),
        ):
            await self.protocol.run(read, write, self.protocol.create_initialization_options())
        return 0

    async def aclose(self) -> None:
        """End every call, and what goes on although its call has ended."""
        await self.running.aclose()
        await self._calls.aclose()

    async def _list_tools(self, _: Context, __: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=[spec.tool(name) for name, spec in TOOLS.items()])

    async def _call_tool(self, context: Context, params: CallToolRequestParams) -> CallToolResult:
        spec = TOOLS.get(params.name)
        if spec is None:
            raise MCPError(INVALID_PARAMS, f"there is no tool {params.name[:100]!r}; there are {', '.join(TOOLS)}")
        try:
            arguments = spec.arguments.model_validate(params.arguments or {})
            progress = CallProgress(context.session.report_progress)
            calling = getattr(self._calls, params.name)(arguments, progress)
            answer = await self.running.finished(_session(context), calling)
        except MCPError:
            raise
        except ValidationError as error:
            return _failed(_wrong(error))
        except BridgeError as error:
            log.info("%s: %s", params.name, error)
            return _failed(error_text(error))
        except Exception as error:
            log.exception("a fault in %s", params.name)
            return _failed(f"{type(error).__name__}: {error}.\nThis is a fault of msp-bridge. Its log has more.")
        return CallToolResult(
            content=[TextContent(type="text", text=visible(answer.text()))],
            structured_content=answer.model_dump(mode="json"),
        )

    async def _list_resources(self, _: Context, __: PaginatedRequestParams | None) -> ListResourcesResult:
        description = "Every result that this server has, with the sources, in the standard format (may be large)."
        title = "Mutation report"
        return ListResourcesResult(
            resources=[Resource(uri=REPORT, name="report", title=title, description=description, mime_type=JSON)]
        )

    async def _read_resource(self, context: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
        if params.uri != REPORT:
            raise MCPError(INVALID_PARAMS, f"there is no resource {params.uri[:100]!r}; there is {REPORT}")
        text = (await self.running.finished(_session(context), self._calls.report())).decode()
        return ReadResourceResult(contents=[TextResourceContents(uri=REPORT, mime_type=JSON, text=text)])

    async def _list_prompts(self, _: Context, __: PaginatedRequestParams | None) -> ListPromptsResult:
        return ListPromptsResult(prompts=[RAISE_SCORE])

    async def _get_prompt(self, _: Context, params: GetPromptRequestParams) -> GetPromptResult:
        return prompt_of(self._root, params)


class _Lines:
    """A message is a line of JSON (MCP, "Transports", stdio)."""

    def __init__(self, stream: ByteStream, trace: PeerTrace | None) -> None:
        self._stream, self._trace = stream, trace
        self._open: set[RequestId] = set()  # requests whose answers are not written yet

    async def receive(
        self,
        inbound: MemoryObjectSendStream[SessionMessage | Exception],
        answers: MemoryObjectSendStream[SessionMessage],
    ) -> None:
        """Pass on what comes, and close `inbound` at the end. A line that is no message is answered here."""
        rest = bytearray()
        async with inbound, answers:
            while data := await self._stream.read():
                rest += data
                lines: list[bytearray] = []
                if b"\n" in data:  # else a long line would be looked through again with each part of it
                    *lines, rest = rest.split(b"\n")
                if any(len(line) > MAX_MESSAGE for line in (*lines, rest)):
                    log.error("a message is longer than %d bytes: the connection ends", MAX_MESSAGE)
                    return
                for line in filter(bytearray.strip, lines):
                    await self._pass_on(bytes(line), inbound, answers)

    async def _pass_on(
        self,
        line: bytes,
        inbound: MemoryObjectSendStream[SessionMessage | Exception],
        answers: MemoryObjectSendStream[SessionMessage],
    ) -> None:
        if self._trace is not None:
            self._trace.received(line)
        try:
            message = jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValidationError as error:
            log.warning("the client sent a line that is no message: %s", line[:200].decode("utf-8", "replace"))
            fault = error.errors()[0]
            code = PARSE_ERROR if fault["type"] == "json_invalid" else INVALID_REQUEST
            problem = f"a line is no JSON-RPC message: {'.'.join(map(str, fault['loc']))}: {fault['msg']}"
            await _refuse(answers, None if code == PARSE_ERROR else _request_id(line), code, problem)
            return
        match message:
            case JSONRPCNotification() if "id" in from_json(line):  # to the SDK, an id of a wrong type is none
                await _refuse(answers, None, INVALID_REQUEST, "the id of a request is a number or a string")
                return
            case JSONRPCRequest(id=id):
                if len(self._open) >= MAX_OPEN:
                    problem = f"{MAX_OPEN} requests have no answer yet; wait for one of them, or cancel it"
                    await _refuse(answers, id, ErrorCode.REQUEST_FAILED, problem)
                    return
                self._open.add(id)
            case JSONRPCNotification(method="notifications/cancelled", params={"requestId": str() | int() as id}):
                self._open.discard(id)  # MCP has no answer to what is cancelled
        await inbound.send(SessionMessage(message))

    async def send(self, outbound: MemoryObjectReceiveStream[SessionMessage], broken: Callable[[], object]) -> None:
        """Write what the server sends, until it is closed. `broken` is called when the client reads no more."""
        gone = False
        async with outbound:
            async for message in outbound:
                if gone:  # dropped, so that the server ends in order
                    continue
                body = message.message.model_dump_json(by_alias=True, exclude_unset=True).encode()
                if self._trace is not None:
                    self._trace.sent(body)
                try:
                    await self._stream.write(body + b"\n")
                    if isinstance(message.message, JSONRPCResponse | JSONRPCError):
                        self._open -= {message.message.id}
                except OSError as error:
                    log.info("the client reads no more (%s): the connection ends", error)
                    gone = True
                    broken()


def _session(context: Context) -> str | None:
    """The id of the session over HTTP that a call is of; since version 2026-07-28 there is none."""
    return None if context.request is None else context.request.headers.get(SESSION_HEADER)


def _request_id(line: bytes) -> RequestId | None:
    """The id of a request in JSON that may be malformed."""
    message = from_json(line)
    id = message.get("id") if isinstance(message, dict) and "method" in message else None
    return id if isinstance(id, str | int) and not isinstance(id, bool) else None


async def _refuse(
    answers: MemoryObjectSendStream[SessionMessage], id: RequestId | None, code: int, problem: str
) -> None:
    """Returns when what was to be written before is written."""
    error = ErrorData(code=code, message=problem)
    await answers.send(SessionMessage(JSONRPCError(jsonrpc="2.0", id=id, error=error)))


def _failed(text: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=visible(text))], is_error=True)


def _wrong(error: ValidationError) -> str:
    """Which arguments are wrong, and why."""
    wrong = [
        f"{'.'.join(map(str, each['loc'])) or 'arguments'}: {each['msg']}"[:MAX_FAULT]
        for each in error.errors(include_input=False)[:MAX_FAULTS]
    ]
    return "\n".join([*wrong, "What to do: correct the arguments; the tool's input schema has their types and bounds."])
