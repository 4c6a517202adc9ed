"""`msp-bridge serve`: the command line of MSP 0.4, "Server Startup Options"."""

from __future__ import annotations

import asyncio
import gc
import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from msp_bridge import __version__
from msp_bridge.access import ENVIRONMENT_VARIABLE
from msp_bridge.cli.options import OPTIONS, Choice, Options, bridge_options, outside, with_options
from msp_bridge.dialects.dialect import DEFAULT, DIALECTS, load
from msp_bridge.jsonrpc.trace import Trace
from msp_bridge.server import exit_on_signal, serve_connected, serve_on_stdio, serve_stdio
from msp_bridge.workspace.open_workspaces import OpenWorkspaces
from msp_bridge.writing import writing_to

if TYPE_CHECKING:
    from msp_bridge.cli.socket_options import SocketOptions

# A result is a few small objects that are gone when it is sent: looking for cycles in them is a fifth of its cost.
GC_THRESHOLDS = (20_000, 10, 10)

MTP_ONLY = ("client_port", "client_host")
LISTENING = ("socket", "websocket")  # channels
SOCKET_ONLY = ("port", "address", "allow_remote", "token_file", "tls_cert", "tls_key")
SERVER_OPTIONS: list[click.Parameter] = [
    click.Option(
        ["--dialect"],
        type=Choice(list(DIALECTS)),
        default=DEFAULT,
        show_default=True,
        help="The protocol to speak: msp is the Mutation Server Protocol 0.4, lsp the Language Server Protocol; "
        "`msp-bridge docs dialects` has the others.",
    ),
    click.Option(["--allow-remote"], is_flag=True, help="Let other machines connect; needs a token.  [with --port]"),
    click.Option(
        ["--token-file"],
        metavar="FILE",
        help=f"A file with the token that every client must send; or set {ENVIRONMENT_VARIABLE}.  [with --port]",
    ),
    click.Option(["--tls-cert"], metavar="FILE", help="Speak TLS, with this certificate (PEM).  [with --port]"),
    click.Option(["--tls-key"], metavar="FILE", help="The certificate's private key (PEM).  [with --port]"),
    click.Option(
        ["--client-port"],
        type=click.IntRange(1, 65535),
        metavar="PORT",
        help="The port on which the client listens: the server connects to it.  [mtp only]",
    ),
    click.Option(["--client-host"], metavar="HOST", help="Where it listens.  [mtp only; default: localhost]"),
    click.Option(["--server"], is_flag=True, hidden=True),  # what every client of Microsoft.Testing.Platform says
    click.Option(["--trace"], metavar="FILE", help="Record every message there, with times, for a bug report."),
]


@click.command("serve", context_settings={"show_default": True})
@click.argument("channel", type=Choice(["stdio", "socket", "websocket", "mcp", "mtp"]))
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    help="The port to listen on; 0 picks a free one.  [sockets, and mcp over HTTP]",
)
@click.option("--address", metavar="HOST", help="The address to listen on.  [with --port; default: localhost]")
@with_options(SERVER_OPTIONS)
@bridge_options
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[-- OPTIONS]")
def command(channel: str, port: int | None, address: str | None, arguments: tuple[str, ...], **values: Any) -> None:
    """Serve editors, by the Mutation Server Protocol or another dialect, or coding agents.

    `serve stdio` and `serve socket` speak that dialect, and so does `serve websocket`, one message a text frame (`pip
    install 'msp-bridge[websocket]'`). `serve mcp` speaks the Model Context Protocol (`pip install 'msp-bridge[mcp]'`)
    on stdio, or with --port over HTTP, and `serve mtp` connects to a client of Microsoft.Testing.Platform. The bridge's
    own options may stand before or after `--`, as the protocol has them:

    \b
        msp-bridge serve stdio
        msp-bridge serve socket --port 5678 -- --adapter mutmut --log-level debug
        msp-bridge serve mcp --root /home/you/shop
        msp-bridge serve mcp --port 5680 --token-file ~/msp-token

    The address and all log messages go to stderr; stdout carries the protocol alone.

    \b
    Exit codes:
      0    the client has ended the session, or SIGTERM or Ctrl-C has
      1    it can't listen, or a client of LSP left without `shutdown`
      2    the command line is wrong
    """
    with exit_on_signal():
        _serve(channel, values | {"port": port, "address": address} | _after_the_dashes(arguments))


def _serve(channel: str, values: Mapping[str, Any]) -> None:
    _check(channel, values)
    token = os.environ.pop(ENVIRONMENT_VARIABLE, None)  # tools must not inherit it
    if channel == "mcp":
        _serve_agents(values, token)
        return
    options = Options.of(values)
    socket_options = _socket_options(values, token) if channel in LISTENING else None
    trace = _trace(outside(options.root, values["trace"], "--trace"))
    options.start_logging("info")
    dialect = load("mtp" if channel == "mtp" else values["dialect"])
    workspaces = _workspaces(options, anywhere=socket_options is None)
    if socket_options is not None:
        asyncio.run(socket_options.serve(channel, workspaces, dialect, trace))
        return
    if (port := values["client_port"]) is None:
        serving = serve_stdio(workspaces, dialect, trace)
    else:  # of `serve mtp`
        serving = serve_connected(values["client_host"] or "localhost", port, workspaces, dialect, trace)
    if exit_code := asyncio.run(serving):
        raise SystemExit(exit_code)


def _serve_agents(values: Mapping[str, Any], token: str | None) -> None:
    """Serve agents. On stdio, a client may start the server anywhere in the project, as people start `run`."""
    from msp_bridge.toolkit.install import of_extra

    with of_extra("mcp", "`serve mcp` needs the SDK of the Model Context Protocol, version 2.3 or newer"):
        from msp_bridge.mcp.server import AgentServer

    socket_options = None if values["port"] is None else _socket_options(values, token)
    if socket_options is not None and socket_options.token is None:
        raise click.UsageError(
            f"`serve mcp` needs a token when it listens: add --token-file FILE, or set {ENVIRONMENT_VARIABLE}; "
            "make one with `openssl rand -hex 32`"
        )
    options = Options.of(values, search=True)
    trace = _trace(outside(options.root, values["trace"], "--trace"))
    options.start_logging("warning" if socket_options is None else "info")
    workspaces = _workspaces(options)
    server = AgentServer(options.root, workspaces)
    if socket_options is None:
        asyncio.run(serve_on_stdio("MCP", server.serve, workspaces, trace))
    else:
        asyncio.run(socket_options.serve_agents(server, workspaces, trace))


def _workspaces(options: Options, *, anywhere: bool = False) -> OpenWorkspaces:
    """`anywhere`: the client has started us, and may name directories outside the root."""
    gc.freeze()  # what is loaded by now stays
    gc.set_threshold(*GC_THRESHOLDS)
    os.chdir(options.root)  # the paths of MSP are relative to the server's working directory
    return OpenWorkspaces(options.root, options.configuration, options.named, anywhere=anywhere)


def _socket_options(values: Mapping[str, Any], token: str | None) -> SocketOptions:
    from msp_bridge.cli.socket_options import SocketOptions  # here: an editor waits for `serve stdio`

    return SocketOptions.of(values, token)


def _check(channel: str, values: Mapping[str, Any]) -> None:
    if channel == "mcp" and values["dialect"] != DEFAULT:
        raise click.UsageError("--dialect is for `serve stdio`, `serve socket` and `serve websocket`")
    _check_listening(channel, values)
    if channel != "mtp" and any(values[name] is not None for name in MTP_ONLY):
        raise click.UsageError("--client-port and --client-host are for `serve mtp`")
    if channel == "mtp" and values["client_port"] is None:
        raise click.UsageError("serve mtp needs --client-port: the port on which the client listens")
    if channel == "mtp" and values["dialect"] not in (DEFAULT, "mtp"):
        raise click.UsageError("serve mtp has the dialect mtp, and no other")
    if (values["tls_cert"] is None) != (values["tls_key"] is None):
        raise click.UsageError("--tls-cert and --tls-key need each other")


def _check_listening(channel: str, values: Mapping[str, Any]) -> None:
    given = [name for name in SOCKET_ONLY if values[name] is not None and values[name] is not False]
    if channel == "mcp" and given and "port" not in given:
        option = given[0].replace("_", "-")
        raise click.UsageError(f"--{option} is for `serve mcp --port N`: without a port it serves stdio")
    if channel not in (*LISTENING, "mcp") and given:
        others = "--allow-remote, --token-file, --tls-cert and --tls-key"
        raise click.UsageError(
            f"--port and --address are for `serve socket`, `serve websocket` and `serve mcp`, and so are {others}"
        )
    if channel in LISTENING and values["port"] is None:
        raise click.UsageError(f"serve {channel} needs --port; 0 picks a free one")


def _trace(file: Path | None) -> Trace | None:
    if file is None:
        return None
    from msp_bridge.access.credentials import redact_token  # here: an editor waits for `serve stdio`

    with writing_to(file, "--trace"):
        trace = Trace(file, redact_token)
    trace.event("started", {"version": __version__, "python": platform.python_version(), "on": platform.platform()})
    return trace


def _after_the_dashes(arguments: tuple[str, ...]) -> dict[str, Any]:
    """Options that were set after `--`, without the others."""
    after = click.Command("--", params=[*SERVER_OPTIONS, *OPTIONS])
    context = after.make_context("msp-bridge serve … --", list(arguments))
    set_there = ParameterSource.COMMANDLINE
    return {name: value for name, value in context.params.items() if context.get_parameter_source(name) is set_there}
