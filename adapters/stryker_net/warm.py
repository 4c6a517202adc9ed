"""Warm: one server, kept from request to request, with every assembly as it was built in between."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Sequence

from msp_bridge.concurrency import wait_shielded

from .copy import PrivateCopy
from .serve import Server

log = logging.getLogger(__name__)

PROMPT = 3.0  # s within which a cancel must be answered, or else the server is ended


class Warm:
    """The server of one copy. Whoever asks sees to it that there is one request at a time.

    It is started anew when it is to run elsewhere or with other options, when a file of the build has changed, after a
    failure, and when it doesn't answer a cancel promptly.
    """

    def __init__(self) -> None:
        self._server: Server | None = None
        self._start: tuple[object, ...] = ()

    @contextlib.asynccontextmanager
    async def server(self, copy: PrivateCopy, directory: str, command: Sequence[str]) -> AsyncIterator[Server]:
        """The server in `directory` of a prepared copy. Raises `ToolError`.

        On leaving, it rests or is gone, and no assembly is mutated.
        """
        start = (copy, directory, tuple(command), copy.build)
        if self._server is None or self._server.ended or self._start != start:
            await self.aclose()
            await asyncio.to_thread(copy.output)  # which the server fills
            self._server, self._start = await Server.start(copy, directory, command), start
        sound = False
        try:
            yield self._server
            sound = True
        except (asyncio.CancelledError, GeneratorExit):
            sound = True
            raise
        finally:
            await wait_shielded(asyncio.create_task(self._leave(copy, sound), name="rest of a server of Stryker.NET"))

    async def aclose(self) -> None:
        """End it."""
        server, self._server = self._server, None
        if server is not None:
            await server.end()

    async def _leave(self, copy: PrivateCopy, sound: bool) -> None:
        if self._server is not None and not (sound and await self._server.cancel(PROMPT)):
            log.info("Stryker.NET's server is ended: %s", "it did not answer a cancel" if sound else "it has failed")
            await self.aclose()
        await asyncio.to_thread(copy.restore)
