"""The page shows the report, whatever text is in that. In a real browser, where there is one."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from support.chromium import needs_chromium, tab
from support.viewers import killed, needs_npm, npm_install, reported, survived

from msp_bridge.jsonrpc.json_text import dump
from msp_bridge.reports.html import page
from msp_bridge.reports.viewer import URL, Viewer

NASTY = 'a = b + "</script><script>alert(1)</script><!-- <b>&amp;</b> \u2028 🙂 \\u003c"\n'
STUB = Viewer(b"customElements.define('mutation-test-report-app', class extends HTMLElement {})")


def held(text: str) -> str:
    match = re.search(r'<script type="application/json" id="report">(.*?)</script>', text, re.DOTALL)
    assert match is not None
    return match[1]


def test_the_report_stands_in_the_page_as_it_is(tmp_path: Path) -> None:
    report = reported(tmp_path, survived(status_reason="</SCRIPT >"), source=NASTY)
    text = page(dump(report), STUB, "title").decode()
    assert json.loads(held(text)) == report
    assert "<" not in held(text)


def test_a_title_is_text(tmp_path: Path) -> None:
    text = page(b"{}", STUB, "</title><b>").decode()
    assert "<title>&lt;/title&gt;&lt;b&gt;</title>" in text


def test_a_page_that_needs_the_network_says_so() -> None:
    assert f'the network: its viewer comes from <a href="{URL}">' in page(b"{}", Viewer(), "title").decode()
    assert "the network" not in page(b"{}", STUB, "title").decode()


def test_only_a_live_page_listens() -> None:
    assert 'app.sse = "events"' in page(b"{}", STUB, "title", live=True).decode()
    assert "app.sse" not in page(b"{}", STUB, "title").decode()


@needs_chromium
@needs_npm
async def test_a_browser_shows_files_scores_and_mutants_without_the_network(tmp_path: Path) -> None:
    viewer = Viewer.find(npm_install(tmp_path / "npm"))
    root = tmp_path / "shop"
    report = reported(
        root, survived("src/cart.py"), killed("src/cart.py", 1, "*"), killed("src/receipt.py"), source=NASTY
    )
    (tmp_path / "report.html").write_bytes(page(dump(report), viewer, "Mutation report of shop"))
    async with tab(tmp_path) as browser:
        await browser.go((tmp_path / "report.html").as_uri())
        text = await browser.until("Mutation report of shop", "cart.py", "receipt.py", "66.67")
        assert "It needs JavaScript" not in text
        await browser.go((tmp_path / "report.html").as_uri() + "#mutant/cart.py")
        text = await browser.until("Killed ( 1 )", "Survived ( 1 )")
        assert "</script><script>alert(1)</script><!-- <b>&amp;</b>" in text


@needs_chromium
@needs_npm
@pytest.mark.parametrize(("changed", "shown"), [(b"", "shop.py"), (b"//", "It needs JavaScript, and the network")])
async def test_a_browser_takes_the_pinned_viewer_from_the_cdn_and_no_other(
    tmp_path: Path, changed: bytes, shown: str
) -> None:
    script = Viewer.find(npm_install(tmp_path / "npm")).script
    assert script is not None
    report = reported(tmp_path / "shop", survived())
    (tmp_path / "report.html").write_bytes(page(dump(report), Viewer(), "Mutation report of shop"))
    async with tab(tmp_path) as browser:
        await browser.pretend(URL, script + changed)
        await browser.go((tmp_path / "report.html").as_uri())
        await browser.until(shown)


@needs_chromium
async def test_a_browser_without_the_network_is_told_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "report.html").write_bytes(page(b"{}", Viewer(), "Mutation report of shop"))
    async with tab(tmp_path) as browser:
        await browser.call("Network.enable")
        await browser.call("Network.setBlockedURLs", urls=["*cdn.jsdelivr.net*"])
        await browser.go((tmp_path / "report.html").as_uri())
        await browser.until("It needs JavaScript, and the network")


@pytest.mark.parametrize("report", [{}, {"config": {"a": "<"}}])
def test_the_page_is_ascii_safe_json_in_any_case(report: object) -> None:
    assert json.loads(held(page(dump(report), STUB, "t").decode())) == report
