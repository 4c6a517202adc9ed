"""Trace: a file with every message of every peer and the time at which it came or went, for reports of bugs."""

from __future__ import annotations

import base64
import logging
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from attrs import frozen

from msp_bridge.jsonrpc.json_text import NotJson, dump, parse

log = logging.getLogger(__name__)

SECRET = ("authenticate",)  # methods whose params are nobody's business
TELLING = (b"authenticate", b"token")  # what bytes that hold a token are likely to hold too


class Trace:
    """A file of JSON lines, each written at once. It is appended to, and only its owner may read it.

    A file that can't be written to any more is told in the log, and costs no request.
    """

    def __init__(self, file: Path) -> None:
        """Raises OSError when `file` can't be opened."""
        self._file = file
        self._descriptor: int | None = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def event(self, name: str, facts: Mapping[str, Any]) -> None:
        """Something that is no message: `{"time": …, "event": name, …}`."""
        self.write(dump({"event": name, **facts})[1:])

    def peer(self, number: int) -> PeerTrace:
        """The trace of the peer that is called `number` in it."""
        return PeerTrace(self, number)

    def write(self, members: bytes) -> None:
        """A line with the time and `members`: JSON text of an object without its first brace."""
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
        """Nothing more is traced."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


@frozen
class PeerTrace:
    """What one peer and we say to each other. `direction` is `in` for what the peer says."""

    _trace: Trace
    _number: int

    def event(self, name: str, **facts: Any) -> None:
        """Something that happens to the peer."""
        self._trace.event(name, {"client": self._number, **facts})

    def sent(self, body: bytes) -> None:
        """A message of ours: its text is one line as it is."""
        self._write(b"out", b'"message":%b' % body)

    def received(self, body: bytes) -> None:
        """A message of the peer's."""
        try:
            message = parse(body)
        except NotJson:
            self.malformed(body)
            return
        if isinstance(message, list) and _tells(body):  # a batch, which is refused
            body = b'"withheld"'
        elif _is_secret(message):
            body = dump(_withheld(message))
        # Line ends in JSON text are white space, for within strings they are escaped.
        self._write(b"in", b'"message":%b' % body.replace(b"\n", b" ").replace(b"\r", b" "))

    def malformed(self, data: bytes) -> None:
        """Bytes of the peer's that are no message; withheld when they may have been meant to hold a token."""
        if _tells(data):
            shown: Any = {"withheld": f"{len(data)} bytes that may hold a token"}
        else:
            try:
                shown = {"text": data.decode("utf-8")}
            except UnicodeDecodeError:
                shown = {"base64": base64.b64encode(data).decode()}
        self._write(b"in", b'"malformed":%b' % dump(shown))

    def _write(self, direction: bytes, member: bytes) -> None:
        self._trace.write(b'"client":%d,"direction":"%b",%b}' % (self._number, direction, member))


def _tells(data: bytes) -> bool:
    return any(word in data for word in TELLING)


def _is_secret(message: Any) -> bool:
    match message:
        case {"method": method} if method in SECRET:
            return True
        case {"params": {"token": _}}:
            return True
    return False


def _withheld(message: dict[str, Any]) -> dict[str, Any]:
    plain = {name: value for name, value in message.items() if name in ("jsonrpc", "id", "method")}
    return {name: value for name, value in plain.items() if isinstance(value, int | str)} | {"params": "withheld"}
