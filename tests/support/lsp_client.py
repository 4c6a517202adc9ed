"""An LSP client for the tests: lsprotocol's types check every message of the server."""

from typing import Any

from lsprotocol import converters, types

from support.msp_client import Client, Wire

CONVERTER = converters.get_converter()
REQUESTS = {  # of the server: what the client answers
    "window/workDoneProgress/create": None,
    "workspace/codeLens/refresh": None,
    "workspace/diagnostic/refresh": None,
    "workspace/applyEdit": {"applied": True},
    "window/showMessageRequest": {"title": "not worth a test"},
}
OURS = "msp-bridge/"  # what methods that are none of LSP's begin with
CAPABILITIES = {
    "workspace": {"applyEdit": True, "codeLens": {"refreshSupport": True}},
    "textDocument": {"codeAction": {"codeActionLiteralSupport": {"codeActionKind": {"valueSet": []}}}},
    "window": {"workDoneProgress": True},
}


def _kind(message: dict[str, Any]) -> str | None:
    value = message.get("params", {}).get("value", {})
    return value.get("kind") if isinstance(value, dict) else None


class LspClient(Client):
    """Answers the server's requests at once, and keeps them and its notifications in `heard`."""

    def __init__(self, wire: Wire) -> None:
        super().__init__(wire)
        self.heard: list[dict[str, Any]] = []
        self._asked: dict[Any, str] = {}

    async def begin(self, root: str | None = None, capabilities: Any = None, **more: Any) -> Any:
        """The handshake; the result of `initialize`."""
        params = {"processId": None, "rootUri": root, "capabilities": capabilities or CAPABILITIES} | more
        answer = await self.request("initialize", params)
        await self.notify("initialized", {})
        return answer

    async def notify(self, method: str, params: Any = None) -> None:
        """Send a notification."""
        await self.send({"method": method} | ({} if params is None else {"params": params}))

    async def open(self, uri: str, text: str) -> None:
        """Returns when the server has read the document's file, too."""
        await self.notify(
            "textDocument/didOpen",
            {"textDocument": {"uri": uri, "languageId": "python", "version": 1, "text": text}},
        )
        await self.hover(uri, 0, 0)

    async def change(self, uri: str, text: str, range: Any = None) -> None:
        change = {"text": text} if range is None else {"text": text, "range": range}
        document = {"uri": uri, "version": 2}
        await self.notify("textDocument/didChange", {"textDocument": document, "contentChanges": [change]})

    async def save(self, uri: str) -> None:
        await self.notify("textDocument/didSave", {"textDocument": {"uri": uri}})

    async def lenses(self, uri: str) -> list[tuple[int, str]]:
        """Line and title of each."""
        lenses = await self.request("textDocument/codeLens", {"textDocument": {"uri": uri}})
        return [(lens["range"]["start"]["line"], lens["command"]["title"]) for lens in lenses]

    async def hover(self, uri: str, line: int, character: int) -> Any:
        """What is shown at a place, in Markdown; None for nothing."""
        place = {"line": line, "character": character}
        shown = await self.request("textDocument/hover", {"textDocument": {"uri": uri}, "position": place})
        return shown and shown["contents"]["value"]

    async def actions(self, uri: str, line: int, **context: Any) -> dict[str, Any]:
        """The code actions of a line, by their titles."""
        place = {"line": line, "character": 0}
        about = {"textDocument": {"uri": uri}, "range": {"start": place, "end": place}}
        found = await self.request("textDocument/codeAction", about | {"context": {"diagnostics": [], **context}})
        return {action["title"]: action for action in found}

    async def execute(self, command: str, **argument: Any) -> Any:
        return await self.request("workspace/executeCommand", {"command": command, "arguments": [argument]})

    async def ask(self, method: str, params: Any = None) -> int:
        id = await super().ask(method, params)
        self._asked[id] = method
        return id

    async def until(self, method: str, *, kind: str | None = None) -> Any:
        """The params of the next such message of the server that nobody has taken; `kind` is of a progress."""
        while True:
            for at, message in enumerate(self.heard):
                if message["method"] == method and kind in (None, _kind(message)):
                    return self.heard.pop(at).get("params")
            await self._take(await self.receive())

    async def diagnostics(self) -> list[tuple[int, int, int, str]]:
        """The next that are published: line, column, severity, message of each."""
        published = await self.until("textDocument/publishDiagnostics")
        return [
            (found["range"]["start"]["line"], found["range"]["start"]["character"], found["severity"], found["message"])
            for found in published["diagnostics"]
        ]

    async def tested(self) -> str:
        """What the next progress ends with."""
        ended: str = (await self.until("$/progress", kind="end"))["value"]["message"]
        return ended

    async def answer(self, id: Any) -> dict[str, Any]:
        while id not in self._answers:
            await self._take(await self.receive())
        return self._answers.pop(id)

    async def _take(self, message: dict[str, Any]) -> None:
        if "method" not in message:
            method = self._asked.get(message["id"], OURS)
            if "result" in message and not method.startswith(OURS):
                CONVERTER.structure(message, types.METHOD_TO_TYPES[method][1])
            super()._keep(message)
            return
        if not message["method"].startswith(OURS):
            CONVERTER.structure(message, types.METHOD_TO_TYPES[message["method"]][0])
        self.heard.append(message)
        if "id" in message:
            await self.send({"id": message["id"], "result": REQUESTS[message["method"]]})
