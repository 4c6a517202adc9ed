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


async def test_in_a_terminal_with_a_screen_the_page_opens(
    tmp_path: Path, opened: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    url = await shown(tmp_path)
    assert opened == [url]
    assert capsys.readouterr().err == f"msp-bridge: the report fills at {url}\n"


async def test_without_a_terminal_the_url_is_printed_and_nothing_opens(
    tmp_path: Path, opened: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    url = await shown(tmp_path)
    assert opened == []
    assert capsys.readouterr().err == f"msp-bridge: the report fills at {url}\n"


async def test_without_a_screen_nothing_takes_the_terminal(
    tmp_path: Path, opened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.delenv("DISPLAY")
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    await shown(tmp_path)
    assert opened == []
