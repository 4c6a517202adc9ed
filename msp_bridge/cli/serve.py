"""`msp-bridge serve`: the command line of MSP 0.4, "Server Startup Options"."""

from __future__ import annotations

import asyncio
import gc
import os
from typing import Any

import click

from msp_bridge.cli.options import OPTIONS, Options, bridge_options, log_to_stderr
from msp_bridge.server import serve_socket, serve_stdio
from msp_bridge.workspace.open_workspaces import OpenWorkspaces

# A result is a few small objects that are gone when it is sent: looking for cycles in them is a fifth of its cost.
GC_THRESHOLDS = (20_000, 10, 10)


@click.command("serve", context_settings={"show_default": True})
@click.argument("channel", type=click.Choice(["stdio", "socket"]))
@click.option("--port", type=click.IntRange(0, 65535), help="The port to listen on; 0 picks a free one.  [socket only]")
@click.option("--address", help="The address to listen on.  [socket only; default: localhost]")
@bridge_options
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[-- OPTIONS]")
def command(channel: str, port: int | None, address: str | None, arguments: tuple[str, ...], **values: Any) -> None:
    """Serve the Mutation Server Protocol to editors.

    CHANNEL is stdio or socket. The bridge's own options may stand before or after `--`, as the protocol has them:

    \b
        msp-bridge serve stdio
        msp-bridge serve socket --port 5678 -- --adapter mutmut --log-level debug

    The address and everything else that there is to say goes to stderr; stdout carries the protocol alone.
    """
    if channel == "socket" and port is None:
        raise click.UsageError("serve socket needs --port; 0 picks a free one")
    if channel == "stdio" and (port is not None or address is not None):
        raise click.UsageError("--port and --address are for `serve socket`")
    options = Options.of(values | _after_the_dashes(arguments))
    log_to_stderr(options.log_level or "info")
    gc.freeze()  # what is loaded by now stays
    gc.set_threshold(*GC_THRESHOLDS)
    os.chdir(options.root)  # the paths of MSP are relative to the server's working directory
    asyncio.run(_serve(options, channel, address or "localhost", port or 0))


async def _serve(options: Options, channel: str, address: str, port: int) -> None:
    workspaces = OpenWorkspaces(options.root, options.configuration, options.named)
    if channel == "stdio":
        await serve_stdio(workspaces)
    else:
        await serve_socket(workspaces, address, port)


def _after_the_dashes(arguments: tuple[str, ...]) -> dict[str, Any]:
    """What was set there, without what wasn't."""
    context = click.Command("--", params=OPTIONS).make_context("msp-bridge serve … --", list(arguments))
    return {name: value for name, value in context.params.items() if value is not None}
