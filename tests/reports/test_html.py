"""The page shows the report, whatever text is in that. In a real browser, where there is one."""

import base64
import hashlib
import json
import re
from importlib.resources import files
from pathlib import Path

import pytest
from support.chromium import needs_chromium, tab
from support.viewers import killed, reported, survived

import msp_bridge.reports
from msp_bridge.jsonrpc.messages import dump
from msp_bridge.reports.html import SCRIPT, page

NASTY = 'a = b + "</script><script>alert(1)</script><!-- <b>&amp;</b> \u2028 🙂 \\u003c"\n'
PUBLISHED = "/dXYuoYRvO6rJ0FNtdKR+Hmq5iGrkkSDpc/TGgbSoReog26ZqhLhpSt4l+0Wwew2"  # sha384, in npm's tarball


def held(text: str) -> str:
    match = re.search(r'<script type="application/json" id="report">(.*?)</script>', text, re.DOTALL)
    assert match is not None
    return match[1]


def test_the_report_stands_in_the_page_as_it_is(tmp_path: Path) -> None:
    report = reported(tmp_path, survived(status_reason="</SCRIPT >"), source=NASTY)
    text = page(dump(report), "title").decode()
    assert json.loads(held(text)) == report
    assert "<" not in held(text)


@pytest.mark.parametrize(
    ("title", "shown"),
    [("</title><b>", "&lt;/title&gt;&lt;b&gt;"), ("caf\udce9", "caf\\udce9")],
    ids=["HTML", "not UTF-8"],
)
def test_a_title_is_text(title: str, shown: str) -> None:
    assert f"<title>{shown}</title>" in page(b"{}", title).decode()


def test_only_a_live_page_listens() -> None:
    assert 'app.sse = "events"' in page(b"{}", "title", live=True).decode()
    assert "app.sse" not in page(b"{}", "title").decode()


@needs_chromium
async def test_a_browser_shows_files_scores_and_mutants_without_the_network(tmp_path: Path) -> None:
    root = tmp_path / "shop"
    report = reported(
        root, survived("src/cart.py"), killed("src/cart.py", 1, "*"), killed("src/receipt.py"), source=NASTY
    )
    (tmp_path / "report.html").write_bytes(page(dump(report), "Mutation report of shop"))
    async with tab(tmp_path) as browser:
        await browser.no_network()
        await browser.go((tmp_path / "report.html").as_uri())
        text = await browser.until("Mutation report of shop", "cart.py", "receipt.py", "66.67")
        assert "It needs JavaScript" not in text
        await browser.go((tmp_path / "report.html").as_uri() + "#mutant/cart.py")
        text = await browser.until("Killed ( 1 )", "Survived ( 1 )")
        assert "</script><script>alert(1)</script><!-- <b>&amp;</b>" in text


def test_the_viewer_is_the_published_one() -> None:
    script = files(msp_bridge.reports).joinpath(SCRIPT).read_bytes()
    assert base64.b64encode(hashlib.sha384(script).digest()).decode() == PUBLISHED


def test_a_page_loads_nothing() -> None:
    loads = re.findall(r'(?:src|href)="([^"]{0,30})', page(b"{}", "title").decode())
    assert [address.split(",")[0] for address in loads] == ["data:", "data:text/javascript;base64"]
