"""A page in a browser on the same machine can send bytes to a server on loopback, and gets nothing done with them."""

import json

import pytest
from support.servers import ScriptedProject
from support.socket_servers import socket_server

CALL = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "mutationTest"})
FRAMED = f"Content-Length: {len(CALL)}\r\n\r\n{CALL}"


def post(body: str, *headers: str) -> bytes:
    """What `fetch("http://localhost:5678/", {method: "POST", mode: "no-cors", body})` sends."""
    lines = [*headers, "Origin: https://evil.example", "Content-Type: text/plain", f"Content-Length: {len(body)}"]
    return "\r\n".join(["POST / HTTP/1.1", "Host: localhost:5678", *lines, "", body]).encode()


@pytest.mark.parametrize(
    "sent",
    [
        post(CALL),
        post(FRAMED),
        post(FRAMED, "Connection: keep-alive"),
        post("\r\n\r\n" + FRAMED),
        post(CALL).replace(b"POST / HTTP/1.1", f"POST /{FRAMED} HTTP/1.1".encode()),
        post(CALL).replace(b"POST / HTTP/1.1", b"OPTIONS / HTTP/1.1"),
        post(CALL).replace(b"POST / HTTP/1.1", b"POST http://localhost:5678/ HTTP/1.1"),
        post(CALL).replace(b"\r\n", b"\n"),
        b"GET /?" + FRAMED.encode() + b" HTTP/1.1\r\nUpgrade: websocket\r\nContent-Length: 2\r\n\r\n{}",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + FRAMED.encode(),
        b"\x16\x03\x01\x02\x00\x01\x00" + f"\n\n{FRAMED}".encode(),
        b"\x16\x03\x01\x02\x00\x01:\n" + FRAMED.encode(),
    ],
)
async def test_what_a_browser_can_be_made_to_send_is_no_request(sent: bytes, project: ScriptedProject) -> None:
    project.write("a.py", "1")
    async with socket_server(project) as server:
        client = await server.connect()
        await client.send(sent)
        answer = await client.receive()
        assert (answer["id"], answer["error"]["code"]) == (None, -32600)
        assert "this is no header of a message: " in answer["error"]["message"]
        assert await client.ended() == b""
    assert project.log == []
