"""The errors with which the SDK answers an HTTP request, and what to do next, which it does not say."""

from __future__ import annotations

import json

from starlette.types import Message, Send

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
