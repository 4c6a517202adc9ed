"""`run --live` opens a browser only where somebody can see it."""

import sys
import webbrowser
from pathlib import Path

import pytest

from msp_bridge.cli.outputs import live_page
from msp_bridge.reports.standard import report

OPENING = 0.1  # s: nobody will come


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    urls: list[str] = []

    def browse(url: str) -> bool:
        urls.append(url)
        return True

    monkeypatch.setattr(webbrowser, "open", browse)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("DISPLAY", ":0")
    return urls


async def shown(root: Path) -> str:
    async with live_page(root, report(root, ())) as live:
        live._opening = OPENING
        return live.url


@pytest.mark.parametrize(("terminal", "screen"), [(True, True), (False, True), (True, False)])
async def test_only_in_a_terminal_with_a_screen_the_page_opens(
    tmp_path: Path,
    opened: list[str],
    terminal: bool,
    screen: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Without a screen nothing takes the terminal."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    if not screen:
        monkeypatch.delenv("DISPLAY")
        monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    url = await shown(tmp_path)
    assert opened == [url] * (terminal and screen)
    assert capsys.readouterr().err == f"msp-bridge: the report fills at {url}\n"
