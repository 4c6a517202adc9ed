"""Crowd: how many clients there may be at once, and how many connections that aren't clients yet."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from msp_bridge.access.refusal import Refusal

log = logging.getLogger(__name__)

MAX_CLIENTS = 32
MAX_STRANGERS = 16


class Crowd:
    """Connections by the tasks that serve them, first as strangers, then as clients."""

    def __init__(self) -> None:
        self._strangers: dict[asyncio.Task[Any], None] = {}  # in the order in which they came
        self._clients: set[asyncio.Task[Any]] = set()

    def arrive(self, task: asyncio.Task[Any]) -> None:
        """A stranger more. When there are too many, the one that has dawdled the longest is cancelled.

        Refusing the newcomer instead would let a few idle connections keep everybody out.
        """
        self._strangers[task] = None
        if len(self._strangers) > MAX_STRANGERS:
            slowest = next(iter(self._strangers))
            del self._strangers[slowest]
            slowest.cancel()
            log.warning("%d connections show no token: closed the oldest of them", MAX_STRANGERS + 1)

    def admit(self, task: asyncio.Task[Any]) -> None:
        """The stranger becomes a client. Raises Refusal when there are too many of them."""
        if len(self._clients) >= MAX_CLIENTS:
            raise Refusal(f"{MAX_CLIENTS} clients are connected already; close one of them, or start another server")
        self._strangers.pop(task, None)
        self._clients.add(task)

    def leave(self, task: asyncio.Task[Any]) -> None:
        """One of them is gone."""
        self._strangers.pop(task, None)
        self._clients.discard(task)
