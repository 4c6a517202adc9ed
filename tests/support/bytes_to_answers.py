"""Bytes in, answers out: whatever a client sends, the server answers in well-formed messages, and ends when the client does.

Run it as a fuzz target with `make fuzz` (atheris, coverage-guided); `test_bytes_to_answers.py` runs it on generated input.
"""

import asyncio
import contextlib
import json
import logging
import re
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

from attrs import frozen

from msp_bridge.adapter import Finding, Location, Mutant, Position, Project, Result, Scope, Status
from msp_bridge.dialects.msp import Msp
from msp_bridge.errors import ConfigurationError
from msp_bridge.server import serve_client
from msp_bridge.workspace.projects import Candidate, ProjectFolder, ProjectMap
from msp_bridge.workspace.workspace import Workspace

LIMIT = 20.0  # s; a server that needs longer for a few bytes hangs
ROOT = Path("/nowhere")
MUTANTS = [
    Mutant(path, "m", Location(Position(line, 1), Position(line, 5)), "x")
    for path in ("a.py", "b/c.py")
    for line in (1, 2)
]


@frozen(eq=False)
class Fixed:
    """A tool that has the same mutants always, and kills them."""

    name: ClassVar[str] = "fixed"
    markers: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def detect(cls, project: Project) -> Self | None:
        return cls()

    @classmethod
    def absent(cls, project: Project) -> Finding:
        return Finding(False, "fixed", "absent")

    def claims(self, path: str) -> bool:
        return path.endswith(".py")

    async def discover(self, scope: Scope) -> AsyncGenerator[Mutant, None]:
        for mutant in MUTANTS:
            if scope.covers(mutant.path):
                yield mutant

    async def test(self, mutants: Sequence[Mutant]) -> AsyncGenerator[Result, None]:
        for mutant in mutants:
            yield Result(mutant, Status.KILLED)

    async def diagnose(self) -> AsyncGenerator[Finding, None]:
        yield Finding(True, "fixed", "here")

    async def aclose(self) -> None:
        """Nothing runs."""


class OneWorkspace:
    """In the place of OpenWorkspaces: the same one for every configuration, so that no input makes us read files."""

    def __init__(self) -> None:
        self._workspace = Workspace(
            ProjectMap(ROOT, (ProjectFolder("", (Candidate("fixed", Fixed, Project(ROOT, ROOT), Fixed()),)),))
        )

    async def check(self, named: str | None) -> None:
        if named is not None:
            raise ConfigurationError(f"there is no configuration file {named!r}; leave it out")

    @contextlib.asynccontextmanager
    async def use(self, named: str | None) -> AsyncIterator[Workspace]:
        await self.check(named)
        yield self._workspace


class Said:
    """The server's end: it reads what the client has said, and what it writes is kept."""

    def __init__(self, data: bytes, cut: int) -> None:
        self._chunks = [data[:cut], data[cut:]]
        self.written = b""

    async def read(self) -> bytes:
        while self._chunks:
            if chunk := self._chunks.pop(0):
                return chunk
        return b""

    async def write(self, data: bytes) -> None:
        self.written += data

    async def aclose(self) -> None:
        self._chunks = []


def answers_to(data: bytes) -> list[Any]:
    """What the server writes when a client sends `data` and then closes its side; each message is checked."""
    written = asyncio.run(_served(data))
    messages = []
    while written:
        header = re.match(rb"Content-Length: (0|[1-9][0-9]*)\r\n\r\n", written)
        assert header is not None, written[:100]
        end = header.end() + int(header[1])
        message = json.loads(written[header.end() : end])
        assert message["jsonrpc"] == "2.0"
        assert ("method" in message) + ("result" in message) + ("error" in message) == 1, message
        if "error" in message:
            assert isinstance(message["error"]["code"], int)
            assert message["error"]["message"]
            assert "inside msp-bridge" not in message["error"]["message"], message  # a fault of our own
        messages.append(message)
        written = written[end:]
    return messages


async def _served(data: bytes) -> bytes:
    said = Said(data, len(data) // 2)
    async with asyncio.timeout(LIMIT):
        await serve_client(said, OneWorkspace(), Msp)  # type: ignore[arg-type]
    return said.written


def bodies_or_bytes(data: bytes) -> None:
    """Half of the inputs go as they are, the others are the bodies of messages, a NUL between them."""
    if data[:1] == b"=":
        answers_to(b"".join(b"Content-Length: %d\r\n\r\n%b" % (len(body), body) for body in data[1:].split(b"\0")))
    else:
        answers_to(data)


def main() -> None:
    """The fuzz target; arguments are libFuzzer's."""
    import atheris

    atheris.instrument_all()
    logging.disable()
    atheris.Setup(sys.argv, bodies_or_bytes)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
