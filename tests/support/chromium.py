"""A real headless browser, for what no reading of a page can show. Driven by its DevTools protocol."""

import asyncio
import base64
import contextlib
import itertools
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from msp_bridge.processes import ProcessTree

PROGRAM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
OPTIONS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--remote-debugging-port=0",
]
KEYS = {"Enter": 13, "Escape": 27, "End": 35, "ArrowRight": 39, "ArrowDown": 40, "F1": 112}
LOOK_S = 0.05  # s between two looks at a page
PAGE_TIMEOUT_S = 120.0  # s

needs_chromium = pytest.mark.skipif(PROGRAM is None, reason="needs a browser: chromium is not installed")


class Tab:
    """One page of the browser."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket, self._numbers = socket, itertools.count(1)

    async def call(self, method: str, **params: Any) -> Any:
        number = await self._send(method, params)
        while True:
            answer = await self._socket.receive_json()
            if answer.get("id") == number:
                assert "error" not in answer, answer
                return answer["result"]

    async def no_network(self) -> None:
        """From now on every request to a network fails."""
        await self.call("Network.enable")
        await self.call(
            "Network.emulateNetworkConditions", offline=True, latency=0, downloadThroughput=0, uploadThroughput=0
        )
        await self.call("Network.setBlockedURLs", urls=["http://*", "https://*"])

    async def _send(self, method: str, params: dict[str, Any]) -> int:
        number = next(self._numbers)
        await self._socket.send_json({"id": number, "method": method, "params": params})
        return number

    async def go(self, url: str) -> None:
        await self.call("Page.navigate", url=url)

    async def evaluate(self, script: str) -> Any:
        """The value of a JavaScript expression."""
        answer = await self.call("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    async def text(self) -> str:
        """What a person reads, also in the shadow trees of elements."""
        read: str = await self.evaluate(TEXT)
        return read

    async def until(self, *parts: str) -> str:
        """The text, as soon as all `parts` are in it."""
        text = ""
        try:
            async with asyncio.timeout(PAGE_TIMEOUT_S):
                while not text or not all(part in text for part in parts):
                    await asyncio.sleep(LOOK_S)
                    text = await self.text()
        except TimeoutError:
            raise AssertionError(f"the page never showed all of {parts}, but: {text}") from None
        return text

    async def value(self, script: str) -> Any:
        """The value of a JavaScript expression, as soon as it is a true one."""
        value: Any = None
        try:
            async with asyncio.timeout(PAGE_TIMEOUT_S):
                while not value:
                    await asyncio.sleep(LOOK_S)
                    value = await self.evaluate(script)
        except TimeoutError:
            raise AssertionError(f"never true: {script}; the page: {await self.text()}") from None
        return value

    async def element(self, script: str) -> None:
        """Returns as soon as the JavaScript expression is an element."""
        await self.value(f"({script}) != null")

    async def point(self, element: str) -> dict[str, float]:
        """Move the mouse to the middle of an element, a JavaScript expression, as soon as it is there."""
        await self.value(f"({element})?.getBoundingClientRect().width")
        box = await self.value(f"(({element}).getBoundingClientRect()).toJSON()")
        place = {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2}
        await self.call("Input.dispatchMouseEvent", type="mouseMoved", **place)
        return place

    async def click(self, element: str) -> None:
        place = await self.point(element)
        for kind in ("mousePressed", "mouseReleased"):
            await self.call("Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, **place)

    async def press(self, key: str, *, control: bool = False) -> None:
        """One of KEYS, or a letter."""
        code = KEYS.get(key, ord(key[0].upper()))
        name = {"key": key, "code": key if key in KEYS else f"Key{key.upper()}", "windowsVirtualKeyCode": code}
        text = {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown" if text else "rawKeyDown", "keyUp"):
            await self.call("Input.dispatchKeyEvent", type=kind, modifiers=2 * control, **name, **text)

    async def type(self, text: str) -> None:
        await self.call("Input.insertText", text=text)

    async def picture(self) -> bytes:
        """What the page looks like now, as PNG."""
        picture = await self.call("Page.captureScreenshot", format="png")
        return base64.b64decode(picture["data"])


TEXT = """(() => {
  const walk = node => node.nodeType === 3 ? node.data
    : ["SCRIPT", "STYLE", "SVG"].includes(node.nodeName.toUpperCase()) ? ""
    : [...(node.shadowRoot ?? node).childNodes].map(walk).join(" ");
  return document.body ? walk(document.body).replace(/\\s+/g, " ") : "";
})()"""


@contextlib.asynccontextmanager
async def tab(directory: Path) -> AsyncIterator[Tab]:
    """An empty page in a browser of its own, with a new profile in `directory`."""
    assert PROGRAM is not None
    profile = directory / "profile"
    async with ProcessTree.running(
        [PROGRAM, *OPTIONS, f"--user-data-dir={profile}", "about:blank"], cwd=directory
    ) as browser:
        port = await _port(profile / "DevToolsActivePort", browser)
        async with aiohttp.ClientSession() as session:
            async with session.get(f"http://127.0.0.1:{port}/json/list") as answer:
                pages = await answer.json(content_type=None)
            url = next(page["webSocketDebuggerUrl"] for page in pages if page["type"] == "page")
            async with session.ws_connect(url, max_msg_size=0) as socket:
                yield Tab(socket)


async def _port(file: Path, browser: ProcessTree) -> int:
    async with asyncio.timeout(PAGE_TIMEOUT_S):
        while True:
            with contextlib.suppress(OSError, ValueError, IndexError):
                return int(file.read_text().splitlines()[0])
            assert browser.returncode is None, browser.errors
            await asyncio.sleep(LOOK_S)
