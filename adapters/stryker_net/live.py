"""Live: what Stryker.NET tells while it runs: its page with all mutants, then an event for each that it has tested."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import re
from collections.abc import AsyncGenerator
from pathlib import Path

from msp_bridge.adapter import ToolError

from .assumptions import ESCAPED, FINISHED, PAGE_END, REPORT_MARK, REPORTS, STREAM_ADDRESS, TESTED
from .events import events_of
from .report import Entry, Report
from .run import Run

log = logging.getLogger(__name__)

LOOK = 0.1  # s between two looks for the page
ADDRESS = re.compile(STREAM_ADDRESS)


async def live(run: Run) -> AsyncGenerator[Report | Entry, None]:
    """First the report of the page, then entries that have an id and no file. Ends when there is no more to be had.

    Back-pressure: reads the next event when it is asked for it.
    """
    page = await _page(run)
    if page is None:
        return
    report, address = page
    yield report
    if address is None:
        log.info("Stryker.NET's page names no stream: results come at the end")
        return
    try:
        async with contextlib.aclosing(events_of(*address)) as events:
            async for name, data in events:
                if name == FINISHED:
                    return
                if name == TESTED and (entry := _entry(data)) is not None:
                    yield entry
    except (OSError, ValueError) as error:
        log.info("Stryker.NET's stream can't be read (%s): the other results come at the end", error)


async def _page(run: Run) -> tuple[Report, tuple[str, int] | None] | None:
    """The report in the page and the address of the stream; None when the run ended without a page that can be read."""
    seen: tuple[int, int] | None = None
    while True:
        over = run.over
        for file in sorted((run.output / REPORTS).glob("*.html")):
            status = file.stat()
            if (status.st_mtime_ns, status.st_size) != seen:
                seen = (status.st_mtime_ns, status.st_size)
                try:
                    page = await asyncio.to_thread(_parse, file, run.root)
                except (ValueError, ToolError) as error:
                    log.info("Stryker.NET's page can't be read (%s): results come at the end", error)
                    return None
                if page is not None:
                    return page
        if over:
            return None
        await run.wait(LOOK)


def _parse(file: Path, root: Path) -> tuple[Report, tuple[str, int] | None] | None:
    """None while it isn't written to its end."""
    html = file.read_bytes().decode("utf-8-sig", "replace")
    if not html.rstrip().endswith(PAGE_END):
        return None
    at = html.rfind(REPORT_MARK)
    if at < 0:
        raise ValueError("it holds no report")
    address = ADDRESS.search(html)
    content, _ = json.JSONDecoder().raw_decode(html[at + len(REPORT_MARK) :].replace(ESCAPED, "<"))
    return Report.of(content, root), (address[1], int(address[2])) if address else None


def _entry(data: str) -> Entry | None:
    try:
        entry = json.loads(data)
    except ValueError:
        entry = None
    if not isinstance(entry, dict) or "id" not in entry:
        log.info("Stryker.NET sent an event that can't be read: its result comes at the end")
        return None
    return entry
