"""LivePage: a page on a loopback port that fills while a run goes on. It needs aiohttp, an optional package.

It speaks the viewer's own protocol, Server-Sent Events: `mutant-tested` with the fields of a mutant, then `finished`.
https://github.com/stryker-mutator/mutation-testing-elements/blob/master/docs/implementing-real-time-reporting.md
"""

import asyncio
import contextlib
import json
import secrets
from collections.abc import AsyncGenerator, Iterator
from types import TracebackType
from typing import Any, Self

from aiohttp import web
from aiohttp.typedefs import Handler

from msp_bridge.concurrency import at_most
from msp_bridge.reports.html import EVENTS

HOST = "127.0.0.1"
CHUNK = 200  # events that go out in one write
OPENING_S = 10.0  # that a browser which was asked to open the page gets for it after a short run
LEAVING_S = 5.0  # that a page gets to take the last results
INTERRUPTED_S = 1.0  # after an interrupt, when somebody waits for the prompt
HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",  # the URL is a secret
    "X-Content-Type-Options": "nosniff",
}


class LivePage:
    """Use as an asynchronous context manager; call `show` with each mutant that has been tested.

    Every page gets every event since the beginning, whenever it is opened; the run does not wait for a slow page.
    Leaving the block sends `finished` to each page, and waits a moment for pages that listen, a shorter one
    when the block was cancelled.

    Only programs of the same user can read it: other sites can't, because the `Host` must be ours (DNS rebinding), and
    other users can't, because the URL has a secret in it.
    """

    def __init__(
        self, page: bytes, opening: float = OPENING_S, leaving: float = LEAVING_S, interrupted: float = INTERRUPTED_S
    ) -> None:
        self._page, self._opening, self._leaving, self._interrupted = page, opening, leaving, interrupted
        self._secret = secrets.token_urlsafe(16)
        self._events: list[bytes] = []
        self._finished = False
        self._more = asyncio.Event()
        self._listeners = 0
        self._came, self._left = asyncio.Event(), asyncio.Event()
        self._port = 0
        self.awaited = False  # a browser was asked to open the page

    @property
    def url(self) -> str:
        """The URL of the page."""
        return f"http://{HOST}:{self._port}/{self._secret}/"

    async def __aenter__(self) -> Self:
        app = web.Application(middlewares=[self._guard])
        app.router.add_get(f"/{self._secret}/", self._serve_page)
        app.router.add_get(f"/{self._secret}/{EVENTS}", self._serve_events)
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, HOST, 0)
        await site.start()
        self._port = self._runner.addresses[0][1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._finished = True
            self._add("finished", {})
            async with at_most(self._opening if self.awaited and error is None else 0):
                await self._came.wait()
            async with at_most(self._interrupted if kind is asyncio.CancelledError else self._leaving):
                while self._listeners:
                    self._left.clear()
                    await self._left.wait()
        finally:
            await self._runner.cleanup()

    def show(self, mutant: dict[str, Any]) -> None:
        """Send every page a mutant that has been tested, by its fields in the standard format."""
        self._add("mutant-tested", mutant)

    def _add(self, name: str, data: dict[str, Any]) -> None:
        number = len(self._events) + 1
        self._events.append(f"id: {number}\nevent: {name}\ndata: {json.dumps(data)}\n\n".encode())
        self._more.set()
        self._more = asyncio.Event()

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.headers.get("Host") not in (f"{HOST}:{self._port}", f"localhost:{self._port}"):
            raise web.HTTPForbidden(text="not for this host\n")
        return await handler(request)

    async def _serve_page(self, _: web.Request) -> web.Response:
        return web.Response(body=self._page, content_type="text/html", charset="utf-8", headers=HEADERS)

    async def _serve_events(self, request: web.Request) -> web.StreamResponse:
        """A page that has lost its connection sends the number of its last event, and continues after that."""
        after = request.headers.get("Last-Event-ID", "")
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", **HEADERS})
        response.force_close()
        with self._listening():
            await response.prepare(request)
            async with contextlib.aclosing(self._chunks(int(after) if after.isdecimal() else 0)) as chunks:
                async for chunk in chunks:
                    await response.write(chunk)
            await response.write_eof()
            await asyncio.Event().wait()  # until the page hangs up, which cancels us: then it has everything
        return response

    @contextlib.contextmanager
    def _listening(self) -> Iterator[None]:
        self._listeners += 1
        self._came.set()
        try:
            yield
        finally:
            self._listeners -= 1
            self._left.set()

    async def _chunks(self, sent: int) -> AsyncGenerator[bytes, None]:
        while True:
            more = self._more
            while chunk := self._events[sent : sent + CHUNK]:
                sent += len(chunk)
                yield b"".join(chunk)
            if self._finished and sent >= len(self._events):
                return
            await more.wait()
