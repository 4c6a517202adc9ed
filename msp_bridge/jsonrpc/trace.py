"""Trace: a file with every message of every peer and its time, for bug reports."""

from __future__ import annotations

import base64
import logging
import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from attrs import frozen

from msp_bridge.jsonrpc.messages import NotJson, dump, parse
from msp_bridge.writing import open_private

log = logging.getLogger(__name__)

# A received message, or malformed bytes, as they may be recorded; None when nothing of them may be.
Redact = Callable[[bytes], bytes | None]


class Trace:
    """A file of JSON lines, each written at once. It is appended to, and only its owner may read it.

    When the file can't be written to any more, that is logged, and no request fails.
    """

    def __init__(self, file: Path, redact: Redact) -> None:
        """`redact` sees all that peers send. Raises OSError when `file` can't be opened, or belongs to another user."""
        self._file, self.redact = file, redact
        self._descriptor: int | None = open_private(file)

    def event(self, name: str, facts: Mapping[str, Any]) -> None:
        """Record what is no message: `{"time": …, "event": name, …}`."""
        self.write(dump({"event": name, **facts})[1:])

    def peer(self, number: int) -> PeerTrace:
        """The trace of the peer that is called `number` in it."""
        return PeerTrace(self, number)

    def write(self, members: bytes) -> None:
        """Write a line with the time and `members`: JSON text of an object without its first brace."""
        if self._descriptor is None:
            return
        line = b'{"time":"%b",%b\n' % (datetime.now(UTC).isoformat(timespec="microseconds").encode(), members)
        try:
            while line:
                line = line[os.write(self._descriptor, line) :]
        except OSError as error:
            log.error("the trace ends here, %s can't be written: %s", self._file, error)
            self.close()

    def close(self) -> None:
        """Trace nothing more."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


@frozen
class PeerTrace:
    """The messages of one peer (`direction` is `in`) and the answers to it (`out`)."""

    _trace: Trace
    _number: int

    def event(self, name: str, **facts: Any) -> None:
        """Something that happens to the peer."""
        self._trace.event(name, {"client": self._number, **facts})

    def sent(self, body: bytes) -> None:
        """A message to the peer: its text is one line as it is."""
        self._write(b"out", b'"message":%b' % body)

    def received(self, body: bytes) -> None:
        """A message of the peer."""
        try:
            parse(body)
        except NotJson:
            self.malformed(body)
            return
        recorded = self._trace.redact(body)
        if recorded is None:
            recorded = b'"withheld"'
        # Line ends in JSON text are white space, because within strings they are escaped.
        self._write(b"in", b'"message":%b' % recorded.replace(b"\n", b" ").replace(b"\r", b" "))

    def malformed(self, data: bytes) -> None:
        """Bytes of the peer that are no message."""
        recorded = self._trace.redact(data)
        if recorded is None:
            content: Any = {"withheld": f"{len(data)} bytes that may hold a secret"}
        else:
            try:
                content = {"text": recorded.decode("utf-8")}
            except UnicodeDecodeError:
                content = {"base64": base64.b64encode(recorded).decode()}
        self._write(b"in", b'"malformed":%b' % dump(content))

    def _write(self, direction: bytes, member: bytes) -> None:
        self._trace.write(b'"client":%d,"direction":"%b",%b}' % (self._number, direction, member))
