"""A server that answers each upload with the same bytes, whatever they are; also one that never answers."""

import contextlib
import json
import socket
import threading
from collections.abc import Iterator
from email.message import Message
from email.parser import BytesParser
from itertools import takewhile
from typing import Any

from attrs import define, field

HREF = "https://dashboard.example/reports/github.com/shop/cart/main"


def http(status: str, body: str = "", headers: str = "") -> bytes:
    return f"HTTP/1.1 {status}\r\n{headers}Content-Length: {len(body.encode())}\r\n\r\n{body}".encode()


CREATED = http("200 OK", json.dumps({"href": HREF}))


@define
class Request:
    line: str
    headers: Message
    body: bytes

    @property
    def report(self) -> Any:
        return json.loads(self.body)


@define
class FakeDashboard:
    """`answer` is what it says; None to say nothing until all is over."""

    url: str
    answer: bytes | None = CREATED
    requests: list[Request] = field(factory=list)
    over: threading.Event = field(factory=threading.Event)

    def serve(self, client: socket.socket) -> None:
        with client, client.makefile("rb") as stream, contextlib.suppress(OSError):
            line = stream.readline().decode().strip()
            headers = BytesParser().parsebytes(b"".join(takewhile(bytes.strip, stream)))
            self.requests.append(Request(line, headers, stream.read(int(headers["Content-Length"] or 0))))
            if self.answer is None:
                self.over.wait()
            else:
                client.sendall(self.answer)


@contextlib.contextmanager
def dashboard() -> Iterator[FakeDashboard]:
    """A server on this machine, for one client after the other."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        made = FakeDashboard("http://{}:{}".format(*listening.getsockname()))

        def accept() -> None:
            while True:
                try:
                    client, _ = listening.accept()
                except OSError:
                    return
                made.serve(client)

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield made
        listening.shutdown(socket.SHUT_RDWR)
        made.over.set()
        thread.join(60)
