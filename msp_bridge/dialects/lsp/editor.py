"""Editor: what the client can do, and what it is sent by itself: messages, diagnostics, progress, refreshes."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from typing import Any

from msp_bridge.dialects.lsp.documents import ENCODINGS, Units
from msp_bridge.jsonrpc.connection import Connection
from msp_bridge.jsonrpc.messages import RpcError
from msp_bridge.text import one_line, visible

log = logging.getLogger(__name__)

ERROR, WARNING, INFO = 1, 2, 3  # MessageType
PULL, LENSES = "workspace/diagnostic/refresh", "workspace/codeLens/refresh"
ANSWER_S = 60.0  # for the client to answer a request that nobody waits for
PAUSE_S = 0.2  # between two reports of a progress, and before what is asked for anew is asked for once more

Start = Callable[[Coroutine[Any, Any, None], str], asyncio.Task[None]]


class Editor:
    """The client, with the capabilities of its `initialize`. `start` begins work that nobody waits for."""

    def __init__(self, client: Connection, start: Start, capabilities: Mapping[str, Any]) -> None:
        self._client, self._start, self._capabilities = client, start, capabilities
        self._numbers = itertools.count(1)
        self._refreshing: dict[str, bool] = {}  # by method: whether it is due once more
        self._running: dict[Any, asyncio.Task[Any]] = {}  # by the token of the progress
        offered = self._capability("general", "positionEncodings")
        encodings = [name for name in offered if name in ENCODINGS] if isinstance(offered, list) else []
        self.units = Units(encodings[0]) if encodings else Units()
        # A client that pulls, and refreshes on request (an empty object says that it can), is not pushed to: it would
        # show what it gets by both ways twice.
        self.pulls = self._capability("textDocument", "diagnostic") is not None and self._can_refresh("diagnostics")
        self.takes_actions = self._capability("textDocument", "codeAction", "codeActionLiteralSupport") is not None
        self._takes_versions = bool(self._capability("textDocument", "publishDiagnostics", "versionSupport"))
        self.applies_edits = bool(self._capability("workspace", "applyEdit"))

    async def say(self, text: str, kind: int = INFO) -> None:
        """Show a message to the user."""
        await self._client.notify("window/showMessage", {"type": kind, "message": f"msp-bridge: {visible(text)}"})

    async def log(self, text: str) -> None:
        """Write into the log that the editor shows of this server."""
        await self._client.notify("window/logMessage", {"type": INFO, "message": f"msp-bridge: {visible(text)}"})

    async def choose(self, question: str, answers: Sequence[str]) -> str | None:
        """Ask the user, who may choose none of the `answers`. Raises RpcError when the client doesn't ask."""
        actions = [{"title": answer} for answer in answers]
        params = {"type": INFO, "message": f"msp-bridge: {visible(question)}", "actions": actions}
        chosen = await self._client.request("window/showMessageRequest", params)
        title = chosen.get("title") if isinstance(chosen, dict) else None
        return title if title in answers else None

    async def publish(self, uri: str, diagnostics: Sequence[Any], version: int | None = None) -> None:
        """Send the diagnostics of a document, in the place of those before; `version` is that of the client's text."""
        params: dict[str, Any] = {"uri": uri, "diagnostics": diagnostics}
        if version is not None and self._takes_versions:
            params["version"] = version
        await self._client.notify("textDocument/publishDiagnostics", params)

    async def notify(self, method: str, params: Any) -> None:
        """Send a notification that is none of LSP's."""
        await self._client.notify(method, params)

    async def apply(self, label: str, edit: Any) -> None:
        """Have the client make an edit. Raises RpcError when it doesn't."""
        answer = await self._client.request("workspace/applyEdit", {"label": label, "edit": edit})
        if not (isinstance(answer, dict) and answer.get("applied")):
            reason = answer.get("failureReason") if isinstance(answer, dict) else None
            await self.say(f"the edit was not made: {reason or 'the editor refused it'}", WARNING)

    def refresh(self, what: str) -> None:
        """Have the client ask anew for its code lenses (LENSES) or diagnostics (PULL), if it refreshes on request."""
        if not self._can_refresh("codeLens" if what == LENSES else "diagnostics"):
            return
        if what in self._refreshing:
            self._refreshing[what] = True
        else:
            self._start(self._refresh(what), what)

    async def _refresh(self, what: str) -> None:
        self._refreshing[what] = True
        try:
            while self._refreshing[what]:
                self._refreshing[what] = False
                with contextlib.suppress(RpcError, TimeoutError):  # it asks at the next change, then
                    async with asyncio.timeout(ANSWER_S):
                        await self._client.request(what, None)
                await asyncio.sleep(PAUSE_S)
        finally:
            del self._refreshing[what]

    @contextlib.asynccontextmanager
    async def progress(self, title: str, token: Any = None) -> AsyncIterator[WorkDoneProgress]:
        """Shown while it is entered, with a button that cancels this task; with the client's own `token`, if any."""
        created = token is None
        token = f"msp-bridge-{next(self._numbers)}" if created else token
        progress = WorkDoneProgress(self._client, token, title)
        task = asyncio.current_task()
        assert task is not None
        self._running[token] = task
        if not created:
            await progress.begin()
        elif self._capability("window", "workDoneProgress"):
            self._start(progress.create(), "progress")
        try:
            yield progress
        finally:
            del self._running[token]
            await progress.end()

    def cancel(self, token: Any) -> None:
        """Cancel the task of a progress, as its user has asked; too late is no fault."""
        if (task := self._running.get(token)) is not None:
            task.cancel()

    def _can_refresh(self, what: str) -> bool:
        return bool(self._capability("workspace", what, "refreshSupport"))

    def _capability(self, *path: str) -> Any:
        value: Any = self._capabilities
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        return value


class WorkDoneProgress:
    """One `$/progress`: nothing is sent before it has begun. `message` is what it ends with."""

    def __init__(self, client: Connection, token: Any, title: str) -> None:
        self._client, self._token, self._title = client, token, one_line(title)
        self._begun = self._ended = False
        self._next = 0.0
        self.message = ""

    async def create(self) -> None:
        """Begin, if the client agrees; what has ended by then ends at once."""
        with contextlib.suppress(RpcError, TimeoutError):
            async with asyncio.timeout(ANSWER_S):
                await self._client.request("window/workDoneProgress/create", {"token": self._token})
            await self.begin()
            if self._ended:
                await self.end()

    async def begin(self) -> None:
        """Show the title."""
        self._begun = True
        await self._send({"kind": "begin", "title": self._title, "cancellable": True})

    async def report(self, message: str) -> None:
        """Show how far it is, though not too often."""
        self.message = message
        now = asyncio.get_running_loop().time()
        if now >= self._next:
            self._next = now + PAUSE_S
            await self._send({"kind": "report", "message": message})

    async def end(self) -> None:
        """Show what came of it."""
        self._ended = True
        with contextlib.suppress(ConnectionError):  # then nobody looks at it
            await self._send({"kind": "end", "message": self.message})

    async def _send(self, value: Any) -> None:
        if self._begun:
            await self._client.notify("$/progress", {"token": self._token, "value": value})
