"""Takes the pictures of VS Code and of `browse` for docs/images, and makes the extension's icon: `make pictures`."""

import asyncio
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from support.browsing import browsing, shown
from support.chromium import Tab, tab
from support.stryker_js_trees import CORE9, TESTS
from support.workbench import ROOT, Workbench, path_without_bridge, workbench

IMAGES = ROOT / "docs" / "images"
ICON = ROOT / "editors" / "vscode" / "icon.svg"
VENV = Path(sys.prefix)
WIDTH, HEIGHT = 1100, 640  # of the window, in pixels
ICON_SIZE = 256
IGNORED = shutil.ignore_patterns(".*", "mutants", "node_modules", "__pycache__")


def shop(directory: Path) -> Path:
    """A copy of the example, with the environment of the tests as its own."""
    root = directory / "shop"
    shutil.copytree(ROOT / "examples" / "shop", root, ignore=IGNORED)
    (root / ".venv").symlink_to(VENV)
    return root


def repository(directory: Path) -> Path:
    """Python in one folder and JavaScript in another, each with its tool."""
    root = directory / "repository"
    shop(root).rename(root / "backend")
    shutil.copytree(TESTS / "projects" / "js_mocha", root / "web", ignore=IGNORED)
    (root / "web" / "node_modules").symlink_to(CORE9)
    (root / ".venv").symlink_to(VENV)
    return root


async def vscode(directory: Path) -> None:
    """The example: all mutants, and one that no test kills in the editor."""
    root = shop(directory)
    async with workbench(directory, root, root / "src/shop/cart.py", environment(directory)) as window:
        await tested(window)
        await window.expand("mutmut")
        await window.expand("src/shop/cart.py")
        await next_problem(window)
        await taken(window.page, IMAGES / "vscode-lsp.png")


async def vscode_with_a_repository(directory: Path) -> None:
    """Two projects: only what no test kills."""
    root = repository(directory)
    async with workbench(directory, root, root / "web/lib/price.js", environment(directory)) as window:
        await tested(window)
        await window.page.click(
            "document.querySelector('.testing-filter-action-item .monaco-editor, .testing-filter-wrapper')"
        )
        await window.page.type("@failed")
        await next_problem(window)
        await taken(window.page, IMAGES / "vscode-monorepo.png")


async def browse(directory: Path) -> None:
    """The results of the example, at a mutant that no test kills."""
    root, variables = shop(directory), environment(directory)
    os.environ.update(variables)  # the program runs in this process
    run = [VENV / "bin/msp-bridge", "run", "--quiet"]
    subprocess.run(run, cwd=root, env=os.environ, check=True, stdout=subprocess.DEVNULL)
    os.chdir(root)  # paths are shown as they are from here
    async with browsing(root, size=(100, 28)) as pilot:
        await pilot.press("down", "down", "down")
        await shown(pilot, "+ ")
        picture = pilot.app.export_screenshot(title="msp-bridge browse")
    fonts = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)  # from the network: the reader's own do
    (IMAGES / "browse.svg").write_text(fonts.sub("", picture))


async def icon(directory: Path) -> None:
    """The icon as a PNG: a marketplace takes no SVG."""
    async with tab(directory) as page:
        await resize(page, ICON_SIZE, ICON_SIZE)
        await page.go(ICON.as_uri())
        await page.element("document.querySelector('svg rect')")
        await taken(page, ICON.with_suffix(".png"))


async def tested(window: Workbench) -> None:
    """All mutants, in the Testing view."""
    await window.trust()
    await resize(window.page)
    await window.show_testing()
    await window.page.element(window.row("mutmut", "Not yet run"))
    await window.command("Test: Run All Tests")
    await window.page.element(window.row("mutmut", "Failed"))
    await window.command("View: Hide Panel")


async def next_problem(window: Workbench) -> None:
    """Show a mutant that no test kills where it is."""
    await window.command("View: Focus Active Editor Group")
    await window.command("Go to Next Problem (Error, Warning, Info)")
    await window.page.until("Survived: ")


async def resize(page: Tab, width: int = WIDTH, height: int = HEIGHT) -> None:
    await page.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)


async def taken(page: Tab, file: Path) -> None:
    """When two looks show the same, or after ten. Made smaller by pngquant, where it is installed."""
    await page.call("Input.dispatchMouseEvent", type="mouseMoved", x=WIDTH - 1, y=1)  # away from what it explains
    before, now = b"", await page.picture()
    for _ in range(10):
        if before == now:
            break
        await asyncio.sleep(1)
        before, now = now, await page.picture()
    file.write_bytes(now)
    if pngquant := shutil.which("pngquant"):
        subprocess.run([pngquant, "--force", "--ext", ".png", str(file)], check=True)


def environment(directory: Path) -> dict[str, str]:
    return {**os.environ, "PATH": path_without_bridge(), "MSP_BRIDGE_CACHE": str(directory / "cache")}


async def main() -> None:
    """Each in a directory of its own, one after another."""
    for picture in (icon, browse, vscode, vscode_with_a_repository):
        with tempfile.TemporaryDirectory() as directory:
            await picture(Path(directory))


if __name__ == "__main__":
    asyncio.run(main())
