"""A real VS Code with our extension: the web build and the extension host of code-server, in a browser."""

import asyncio
import contextlib
import json
import os
import re
import shutil
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from urllib.parse import urlencode

import psutil
import pytest

from msp_bridge.processes import ProcessTree
from support.chromium import PROGRAM, Tab, tab
from support.strays import with_argument

ROOT = Path(__file__).parents[2]
SERVER = ROOT / "tests/npm/vscode/node_modules/code-server/lib/vscode/out/server-main.js"
EXTENSION = ROOT / "build/msp-bridge.vsix"
START_TIMEOUT_S = 120.0
LISTENING = re.compile(rb"Extension host agent listening on (\d+)")
ROWS = "[...document.querySelectorAll('.test-explorer .monaco-list-row')]"
TRUSTED = "document.querySelector('.workspace-trust-editor')?.innerText.includes('You trust this')"
TRUST = (  # "Add Folder" may be there earlier
    "[...document.querySelectorAll('.workspace-trust-editor .monaco-button')]"
    ".find(button => button.innerText.trim() === 'Trust')"
)
# Trust enables extensions from here on: what acts on it is made when the window has been restored.
RESTORED = "performance.getEntriesByName('code/didCreateWorkbenchContributions/3').length"
MISSING = [
    what
    for what, there in {
        "chromium": PROGRAM,
        "node": shutil.which("node"),
        "code-server (`make test` installs it)": SERVER.exists(),
        "the extension (`make vscode` builds it)": EXTENSION.exists(),
    }.items()
    if not there
]

needs_vscode = pytest.mark.skipif(bool(MISSING), reason=f"needs {' and '.join(MISSING)}")


class Workbench:
    """One window of VS Code."""

    def __init__(self, page: Tab) -> None:
        self.page = page

    async def command(self, title: str) -> None:
        """Run a command of the palette."""
        await self.page.press("F1")
        page = self.page
        await page.element("document.activeElement?.closest('.quick-input-widget')")
        await page.type(title)
        labels = "[...document.querySelectorAll('.quick-input-list .monaco-list-row .label-name')]"
        await page.click(f"{labels}.find(label => label.innerText === {json.dumps(title)})")
        await page.value("!document.activeElement?.closest('.quick-input-widget')")

    async def trust(self) -> None:
        """Say that we trust the authors of what is open."""
        await self.page.until("Restricted Mode")
        await self.page.value(RESTORED)
        await self.command("Workspaces: Manage Workspace Trust")
        await self.page.value(f"{TRUSTED} || ({TRUST}?.click(), false)")  # a click may meet a page that is still moving
        await self.command("View: Close Editor")

    async def show_testing(self) -> None:
        """The Testing view, which is there once an extension has tests."""
        await self.page.click("document.querySelector('.activitybar .action-label[aria-label^=Testing]')")

    def row(self, label: str, state: str = "") -> str:
        """The first row of the Testing view with these texts, as a JavaScript expression."""
        texts = f"row.innerText.includes({json.dumps(label)}) && row.ariaLabel.includes({json.dumps(f'({state}')})"
        return f"{ROWS}.find(row => {texts})"

    async def expand(self, label: str) -> None:
        await self.page.click(f"{self.row(label)}?.querySelector('.label')")
        await self.page.press("ArrowRight")

    async def test(self, label: str) -> None:
        """Press the row's button."""
        await self.page.point(self.row(label))
        await self.page.click(f"{self.row(label)}?.querySelector('.codicon-testing-run-icon')")

    async def cancel(self) -> None:
        """Press the Testing view's button that is there while tests run, until it is gone."""
        await self.page.click(
            "document.querySelector('.pane-header .codicon-testing-cancel-icon, .title-actions .codicon-testing-cancel-icon')"
        )
        await self.page.value("!document.querySelector('.codicon-testing-cancel-icon')")


@contextlib.asynccontextmanager
async def workbench(
    directory: Path, opened: Path, file: Path, environment: Mapping[str, str]
) -> AsyncIterator[Workbench]:
    """VS Code with no extension but ours, with a folder or workspace file, and a file. Its own files are in `directory`."""
    places = ["--server-data-dir", str(directory / "data"), "--extensions-dir", str(directory / "extensions")]
    argv = ["node", str(SERVER), *places, "--telemetry-level", "off", "--accept-server-license-terms"]
    settings = directory / "data" / "data" / "User" / "settings.json"
    settings.parent.mkdir(parents=True)
    settings.write_text(json.dumps({"workbench.startupEditor": "none", "extensions.ignoreRecommendations": True}))
    env = {**environment, "HOME": str(directory)}
    async with ProcessTree.running(
        [*argv, "--install-extension", str(EXTENSION)], cwd=directory, env=env
    ) as installing:
        async with asyncio.timeout(START_TIMEOUT_S):
            said = await installing.read()
            assert await installing.exited() == 0, (said, installing.errors)
    listens = ["--host", "127.0.0.1", "--port", "0", "--without-connection-token"]
    async with ProcessTree.running([*argv, *listens], cwd=directory, env=env) as server:
        port: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        reading = asyncio.create_task(_read(server, port))
        try:
            async with asyncio.timeout(START_TIMEOUT_S):
                host = f"127.0.0.1:{await port}"
            what = {
                "folder" if opened.is_dir() else "workspace": str(opened),
                "payload": json.dumps([["openFile", f"vscode-remote://{host}{file}"]]),
            }
            async with tab(directory) as page:
                await page.call(
                    "Emulation.setDeviceMetricsOverride", width=1200, height=800, deviceScaleFactor=1, mobile=False
                )
                await page.go(f"http://{host}/?{urlencode(what)}")
                yield Workbench(page)
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)


async def _read(server: ProcessTree, port: asyncio.Future[int]) -> None:
    """All that the server says, lest it waits for us."""
    async for line in server.lines():
        if not port.done() and (match := LISTENING.search(line)):
            port.set_result(int(match[1]))
    if not port.done():
        port.set_exception(AssertionError(f"VS Code's server has ended: {server.errors}"))


def bridges(cwd: Path) -> int:
    """How many bridges run in `cwd`."""
    count = 0
    for pid in with_argument("--dialect"):
        with contextlib.suppress(psutil.Error):
            count += Path(psutil.Process(pid).cwd()) == cwd
    return count


def path_without_bridge() -> str:
    """PATH, but for directories with a msp-bridge."""
    folders = os.environ["PATH"].split(os.pathsep)
    return os.pathsep.join(folder for folder in folders if not (Path(folder) / "msp-bridge").exists())
