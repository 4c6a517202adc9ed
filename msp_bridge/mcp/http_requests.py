"""HttpGate: what an HTTP request needs before the SDK gets it, and the errors with which it is answered.

A web page may send requests to any port of the machine that it is shown on, wherever the page comes from. Its browser
says so by the header `Origin`, which programs don't send. A page whose own name was made to mean this machine (DNS
rebinding) needs no `Origin` for a GET; its name is the `Host` then. Neither knows the token: this is the second line.
"""

import asyncio
import json
from collections.abc import Mapping
from http import HTTPStatus

from attrs import field, frozen
from starlette.responses import PlainTextResponse
from starlette.types import Message, Receive, Scope, Send

from msp_bridge.access.addresses import is_this_machine
from msp_bridge.access.credentials import Token
from msp_bridge.access.gate import MESSAGE_TIMEOUT_S, WRONG_ONE, WRONG_TOKEN_DELAY_S
from msp_bridge.mcp.server import MAX_MESSAGE

PATH = "/mcp"
MAX_READ = 4 * 1024 * 1024  # bytes of a body that is too long: a client that is cut off while it sends reads no reason
SEND_IT = "this server needs its token: send the header `Authorization: Bearer TOKEN`"
REMEDIES = {  # by what the SDK's text has in it
    "Missing session ID": "send `initialize`, and its Mcp-Session-Id with each further request",
    "Session not found": "send `initialize` for a new session",
    "Client must accept text/event-stream": "send `Accept: text/event-stream`",
    "Client must accept": "send `Accept: application/json, text/event-stream`",
    "Content-Type": "send `Content-Type: application/json`",
    "Method Not Allowed": "POST messages; GET is for events, and DELETE ends the session",
    "Only one SSE stream": "read the events from the stream that is open",
    "Parse error": "send one message of JSON-RPC 2.0",
}


class RequestRefused(Exception):
    """A request does not get to MCP. `reason` is for its client."""

    def __init__(self, status: HTTPStatus, reason: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(reason)
        self.status, self.reason, self._headers = status, reason, headers or {}

    def response(self) -> PlainTextResponse:
        """The answer, which ends the connection: of what comes after it nothing is read."""
        headers = {**self._headers, "Connection": "close"}
        return PlainTextResponse(f"{self.reason}\n", self.status, headers)


class ClientLeft(Exception):
    """The connection has ended before the request was whole."""


@frozen
class HttpGate:
    """Checks each request. `name` is what we listen on; None when other machines call us what they like."""

    _token: Token = field(repr=False)
    _name: str | None

    async def check(self, scope: Scope) -> None:
        """Raises RequestRefused, for a wrong token after a while."""
        headers = dict(scope["headers"])
        if b"origin" in headers:
            raise RequestRefused(HTTPStatus.FORBIDDEN, "web pages are not served: this request has an Origin")
        if self._name is not None and not _is_here(headers.get(b"host", b""), self._name):
            raise RequestRefused(
                HTTPStatus.MISDIRECTED_REQUEST, f"the Host is not this machine: connect to {self._name}"
            )
        if scope["path"].rstrip("/") != PATH:
            raise RequestRefused(HTTPStatus.NOT_FOUND, f"MCP is served at {PATH}")
        await self._authenticate(headers)

    async def _authenticate(self, headers: Mapping[bytes, bytes]) -> None:
        scheme, _, candidate = headers.get(b"authorization", b"").partition(b" ")
        is_bearer = scheme.lower() == b"bearer"
        if is_bearer and self._token.matches(candidate.strip().decode("latin-1")):
            return
        if is_bearer:
            await asyncio.sleep(WRONG_TOKEN_DELAY_S)
        reason = WRONG_ONE if is_bearer else SEND_IT
        raise RequestRefused(HTTPStatus.UNAUTHORIZED, reason, {"WWW-Authenticate": "Bearer"})


async def body_of(receive: Receive) -> bytes:
    """The whole body. Raises RequestRefused when it is too long, or too slow, and ClientLeft."""
    body, length, more = bytearray(), 0, True
    try:
        async with asyncio.timeout(MESSAGE_TIMEOUT_S):
            while more and length <= MAX_READ:
                message = await receive()
                if message["type"] != "http.request":
                    raise ClientLeft
                part, more = message.get("body", b""), message.get("more_body", False)
                length += len(part)
                if length <= MAX_MESSAGE:
                    body += part
    except TimeoutError:
        problem = f"the body did not come within {MESSAGE_TIMEOUT_S:g} s"
        raise RequestRefused(HTTPStatus.REQUEST_TIMEOUT, problem) from None
    if length > MAX_MESSAGE:
        problem = f"a message has {MAX_MESSAGE} bytes at most: name fewer ids or paths"
        raise RequestRefused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, problem)
    return bytes(body)


def replayed(body: bytes, receive: Receive) -> Receive:
    """A `receive` that gives the whole body first."""
    first: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return first.pop() if first else await receive()

    return replay


def header(scope: Scope, name: str) -> str | None:
    """The value of a header, by its name in lower case."""
    value: bytes | None = dict(scope["headers"]).get(name.encode())
    return None if value is None else value.decode("latin-1")


def _is_here(host: bytes, name: str) -> bool:
    """Whether the header `Host` names this machine; behind `ssh -L` the port may be another one."""
    text = host.decode("latin-1").lower()
    if not text.endswith("]"):  # of an IPv6 address without a port
        text = text.rpartition(":")[0] or text
    return text == name.lower() or is_this_machine(text.strip("[]"))


def with_remedies(send: Send) -> Send:
    """Wrap `send`: the text of an error ends with what to do."""
    begun: list[Message] = []

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] >= 400:
            begun.append(message)  # its header has the length of the body
            return
        if begun:
            message = {**message, "body": _with_remedy(message.get("body", b""))}
            start, length = begun.pop(), str(len(message["body"])).encode()
            headers = [(name, length if name == b"content-length" else value) for name, value in start["headers"]]
            await send({**start, "headers": headers})
        await send(message)

    return sent


def _with_remedy(body: bytes) -> bytes:
    """The body of an error, which is JSON-RPC or text."""
    text = body.decode("utf-8", "replace")
    remedy = next((remedy for part, remedy in REMEDIES.items() if part in text), None)
    if remedy is None:
        return body
    try:
        answer = json.loads(text)
        answer["error"]["message"] += f": {remedy}"
    except (ValueError, LookupError, TypeError):
        return f"{text}: {remedy}\n".encode()
    return json.dumps(answer).encode()
