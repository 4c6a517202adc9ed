"""Conversation: what one StrykerJS says in the course of a run, whether it serves or is driven by its command line."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any

from msp_bridge.adapter import BridgeError, Status, ToolError
from msp_bridge.jsonrpc.client import MessageReader
from msp_bridge.jsonrpc.framing import frame
from msp_bridge.jsonrpc.messages import Message, notification
from msp_bridge.processes import ProcessTree

from .failure import BrokenFile, errors, failure
from .mutants import Raw
from .places import Places

# What target/observer.mjs is told:
NEXT = frame(notification("msp-bridge/next", {}))  # one more mutant may start
AGAIN = frame(notification("msp-bridge/again", {}))  # the run that waits shall test what is wanted now
OVER = frame(notification("msp-bridge/over", {}))  # it shall end
STARTED = {Status.KILLED.value, Status.SURVIVED.value, Status.TIMEOUT.value, Status.RUNTIME_ERROR.value}
LOOKS, LOOK = 40, 0.05  # s; the log comes by another pipe than the answer


class Conversation:
    """What our own plugin says is understood here; what belongs to a run is kept until the next `begin`."""

    def __init__(self, tree: ProcessTree, reader: MessageReader, places: Places) -> None:
        self.tree, self.reader, self._places = tree, reader, places
        self._names: dict[str, str] = {}  # of tests, by ids that are no names
        self._why = ""
        self._logged_before = ""

    def begin(self) -> None:
        """A new run."""
        self._names = {}
        self.resume()

    def resume(self) -> None:
        """The same run, which tests other mutants now."""
        self._why, self._logged_before = "", self._logged

    def takes(self, message: Message) -> bool:
        """Whether the message was for us alone."""
        params = message.get("params") or {}
        if message.get("method") == "msp-bridge/tests":
            self._names = dict(params["names"])
        elif message.get("method") == "msp-bridge/failed":
            self._why = params.get("why") or ""
        else:
            return False
        return True

    def understood(self, raw: Raw) -> Raw:
        """The result with the names of tests in place of their ids, and the user's paths in its reason."""
        better: dict[str, Any] = {
            key: self._names_of(raw[key]) for key in ("coveredBy", "killedBy") if raw.get(key) is not None
        }
        if raw.get("statusReason"):
            better["statusReason"] = self._places.told(raw["statusReason"])
        return {**raw, **better}

    async def lease(self, raw: Raw) -> None:
        """Whoever wanted the result has it: the next mutant may start in its place."""
        if raw["status"] in STARTED:
            with contextlib.suppress(ToolError):  # StrykerJS has ended, but what it said last is still to be read
                await self.tree.write(NEXT)

    async def failed(self, message: str) -> BridgeError:
        """The error to raise when StrykerJS gives `message` as the reason why it can't go on."""
        if not isinstance(failure(message, "", ""), BrokenFile):  # that says all; of others the log says more
            for _ in range(LOOKS):
                if self._why or errors(self._news):
                    break
                await asyncio.sleep(LOOK)
        return failure(*map(self._places.told, (message, self._why, self._news)))

    @property
    def _logged(self) -> str:
        return self.tree.errors + self.reader.noise

    @property
    def _news(self) -> str:
        """The log since the run began, as far as it is remembered."""
        return self._logged.removeprefix(self._logged_before)

    def _names_of(self, ids: Sequence[Any]) -> list[str]:
        return [self._names.get(str(id), str(id)) for id in ids]
