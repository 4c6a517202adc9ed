"""An MSP client for the tests, written apart from the bridge's own RPC layer, and strict where that is tolerant."""

import asyncio
import itertools
import json
import re
import ssl
from typing import Any, Protocol

LONG = 240.0  # s; a server that needs longer hangs: twice the 60 s that a program of ours may take to start, and more


class Wire(Protocol):
    """Bytes in both directions."""

    async def read(self) -> bytes: ...
    async def write(self, data: bytes) -> None: ...
    async def aclose(self) -> None: ...


class ReaderWriter:
    """A Wire of asyncio's two halves."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def read(self) -> bytes:
        try:
            return await self._reader.read(65536)
        except ConnectionError:
            return b""

    async def write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    @property
    def unsent(self) -> int:
        """Bytes that the operating system has not taken yet."""
        return self._writer.transport.get_write_buffer_size()

    @property
    def tls(self) -> ssl.SSLObject:
        """What both sides agreed upon."""
        agreed = self._writer.get_extra_info("ssl_object")
        assert isinstance(agreed, ssl.SSLObject)
        return agreed

    async def aclose(self) -> None:
        self._writer.close()

    def abort(self) -> None:
        """Vanish without a goodbye."""
        self._writer.transport.abort()


class Connections:
    """Those that the tests open to one server."""

    def __init__(self) -> None:
        self._open: list[ReaderWriter] = []

    async def open(self, *address: Any, **options: Any) -> ReaderWriter:
        """As `asyncio.open_connection`."""
        self._open.append(ReaderWriter(*await asyncio.open_connection(*address, **options)))
        return self._open[-1]

    def abort(self) -> None:
        """Leave none to the garbage collector, which may come to it in another test."""
        for wire in self._open:
            wire.abort()


class Refused(Exception):
    """The server answered with an error."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(error["message"])
        self.code, self.message, self.data = error["code"], error["message"], error.get("data")


def framed(message: Any) -> bytes:
    """The message as it goes over the wire; bytes are taken for a body."""
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    return b"Content-Length: %d\r\n\r\n" % len(body) + body


class Client:
    """Sends messages and reads answers; reads only on demand."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self._buffer = b""
        self._ids = itertools.count(1)
        self.progress: list[dict[str, Any]] = []  # the params of each notification, in order
        self._answers: dict[Any, dict[str, Any]] = {}

    async def send(self, *messages: Any) -> None:
        """All of them in one write, completed by `jsonrpc`; bytes go as they are."""
        parts = [part if isinstance(part, bytes) else framed({"jsonrpc": "2.0", **part}) for part in messages]
        await self.wire.write(b"".join(parts))

    async def ask(self, method: str, params: Any = None) -> int:
        """Send a request without waiting for its answer; its id."""
        id = next(self._ids)
        await self.send({"id": id, "method": method} | ({} if params is None else {"params": params}))
        return id

    async def cancel(self, id: Any) -> None:
        await self.send({"method": "$/cancelRequest", "params": {"id": id}})

    async def cancelled(self, id: Any) -> None:
        """Cancel the request `id`: it is answered as cancelled."""
        await self.cancel(id)
        assert (await self.answer(id))["error"]["code"] == -32800

    async def request(self, method: str, params: Any = None) -> Any:
        """The result. Raises Refused."""
        return await self.result(await self.ask(method, params))

    async def refused(self, method: str, params: Any = None) -> tuple[int, str]:
        """Code and message of the error that a request is answered with."""
        error = (await self.answer(await self.ask(method, params)))["error"]
        return error["code"], error["message"]

    async def result(self, id: Any) -> Any:
        """The result of an earlier request. Raises Refused."""
        answer = await self.answer(id)
        if "error" in answer:
            raise Refused(answer["error"])
        return answer["result"]

    async def answer(self, id: Any) -> dict[str, Any]:
        """The answer to the request `id`; what else arrives meanwhile is kept."""
        while id not in self._answers:
            self._keep(await self.receive())
        return self._answers.pop(id)

    def _keep(self, message: dict[str, Any]) -> None:
        if "method" in message:
            assert message["method"] == "reportMutationTestProgress"
            assert "id" not in message, "a notification carries no id key at all, and clients answer no requests"
            self.progress.append(message["params"])
        else:
            assert message["id"] not in self._answers, f"answered twice: {message}"
            self._answers[message["id"]] = message

    async def some_progress(self) -> dict[str, Any]:
        """The params of the next notification that nobody has taken; answers are kept."""
        while not self.progress:
            self._keep(await self.receive())
        return self.progress.pop(0)

    def take_results(self) -> list[tuple[str, dict[str, Any]]]:
        """Path and MutantResult of everything that has been reported since the last call."""
        taken, self.progress = self.progress, []
        return [
            (path, mutant) for params in taken for path, file in params["files"].items() for mutant in file["mutants"]
        ]

    async def receive(self) -> dict[str, Any]:
        """The next message. Raises EOFError at the end."""
        header = await self._until(rb"Content-Length: (0|[1-9][0-9]*)\r\n\r\n")
        while len(self._buffer) < int(header[1]):
            await self._more()
        body, self._buffer = self._buffer[: int(header[1])], self._buffer[int(header[1]) :]
        message: dict[str, Any] = json.loads(body)
        assert message["jsonrpc"] == "2.0"
        assert ("method" in message) + ("result" in message) + ("error" in message) == 1, (
            f"exactly one of them: {message}"
        )
        return message

    async def ended(self) -> bytes:
        """What arrives before the server closes its side."""
        while True:
            try:
                await self._more()
            except EOFError:
                return self._buffer

    async def _until(self, pattern: bytes) -> re.Match[bytes]:
        while (match := re.match(pattern, self._buffer)) is None:
            assert len(self._buffer) < 64, f"no header: {self._buffer[:200]!r}"
            await self._more()
        self._buffer = self._buffer[match.end() :]
        return match

    async def _more(self) -> None:
        async with asyncio.timeout(LONG):
            data = await self.wire.read()
        if not data:
            raise EOFError(f"the server has closed its side after {self._buffer[:200]!r}")
        self._buffer += data
