"""The live page of a run: whether the web server for it is installed, and whether a browser can show it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import webbrowser
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from msp_bridge.cli.outputs import Report
from msp_bridge.errors import ConfigurationError
from msp_bridge.jsonrpc.json_text import dump
from msp_bridge.reports import html
from msp_bridge.reports.viewer import Viewer

if TYPE_CHECKING:
    from msp_bridge.reports.live import LivePage


@contextlib.asynccontextmanager
async def live_page(root: Path, report: Report) -> AsyncIterator[LivePage]:
    """A page that shows `report`, on a loopback port while the block runs. Its URL is on stderr.

    A browser opens it where somebody can see that.
    """
    page = html.page(dump(report), Viewer.find(root), f"Mutation report of {root.name}", live=True)
    async with _class()(page) as live:
        click.echo(f"msp-bridge: the report fills at {live.url}", err=True)
        if _somebody_can_see():
            live.awaited = await asyncio.to_thread(webbrowser.open, live.url)
        yield live


def check_installed() -> None:
    """Raises ConfigurationError when what `--live` needs is not installed."""
    _class()


def _class() -> type[LivePage]:
    try:
        from msp_bridge.reports.live import LivePage
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"--live needs a web server, and {error.name} is not installed: pip install 'msp-bridge[live]'"
        ) from None
    return LivePage


def _somebody_can_see() -> bool:
    """In a terminal, with a screen: a browser without one would take the terminal itself."""
    if not sys.stderr.isatty():
        return False
    return sys.platform in ("win32", "darwin") or bool({"DISPLAY", "WAYLAND_DISPLAY"} & os.environ.keys())
