"""SocketOptions: where a server on sockets listens and which clients it accepts, by its options."""

from __future__ import annotations

import logging
import os
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import click
from attrs import frozen

from msp_bridge.access import ENVIRONMENT_VARIABLE
from msp_bridge.access.addresses import Addresses
from msp_bridge.access.credentials import Token, server_tls
from msp_bridge.access.gate import ConnectionGate
from msp_bridge.dialects.dialect import Dialect
from msp_bridge.jsonrpc.framing import FrameDecoder, Framing
from msp_bridge.jsonrpc.trace import Trace
from msp_bridge.socket_server import serve_socket
from msp_bridge.toolkit.install import of_extra
from msp_bridge.workspace.open_workspaces import OpenWorkspaces

if TYPE_CHECKING:
    from msp_bridge.mcp.server import AgentServer

log = logging.getLogger(__name__)


@frozen
class SocketOptions:
    """The addresses to listen on, and what is required of clients."""

    addresses: Addresses
    token: Token | None
    tls: ssl.SSLContext | None

    @classmethod
    def of(cls, values: Mapping[str, Any], variable: str | None) -> Self:
        """Make them from the options' values and the token of the environment. Raises UsageError and BridgeError."""
        addresses = Addresses.resolve(values["address"] or "localhost", values["port"] or 0)
        token = Token.given(_file(values["token_file"]), variable)
        if values["allow_remote"] and token is None:
            raise click.UsageError(
                f"--allow-remote needs a token: add --token-file FILE, or set {ENVIRONMENT_VARIABLE}"
            )
        if addresses.remote and not values["allow_remote"]:
            raise click.UsageError(
                f"other machines can reach {addresses.name}: leave --address out, and use ssh -L on the other machine; "
                f"or add --allow-remote, and a token by --token-file FILE or {ENVIRONMENT_VARIABLE}"
            )
        certificate, key = _file(values["tls_cert"]), _file(values["tls_key"])
        tls = server_tls(certificate, key) if certificate and key else None
        return cls(addresses, token, tls)

    async def serve(
        self, channel: str, workspaces: OpenWorkspaces, dialect: type[Dialect], trace: Trace | None
    ) -> None:
        """Call `serve_socket`, with the framing of this channel. Raises BridgeError."""
        gate = ConnectionGate(self.token, self.tls, _framing_of(channel))
        self._warn()
        await serve_socket(workspaces, dialect, self.addresses, gate, trace)

    async def serve_agents(self, agent: AgentServer, workspaces: OpenWorkspaces, trace: Trace | None) -> None:
        """Call `serve_http`. There must be a token."""
        from msp_bridge.mcp.http_requests import HttpGate  # here: these import the SDK and uvicorn
        from msp_bridge.mcp.http_server import serve_http

        assert self.token is not None
        self._warn()
        gate = HttpGate(self.token, None if self.addresses.remote else self.addresses.name)
        await serve_http(agent, workspaces, self.addresses, gate, self.tls, trace)

    def _warn(self) -> None:
        if self.addresses.remote and self.tls is None:
            log.warning("without --tls-cert and --tls-key, the token and your code cross the network unencrypted")


def _framing_of(channel: str) -> type[Framing]:
    """The framing of `serve socket` or `serve websocket`. Raises ConfigurationError when its package is missing."""
    if channel == "socket":
        return FrameDecoder
    with of_extra("websocket", "`serve websocket` needs the package websockets, version 16 or newer"):
        from msp_bridge.jsonrpc.websocket import WebSocketFraming
    return WebSocketFraming


def _file(path: str | None) -> Path | None:
    return None if path is None else Path(os.path.abspath(path))
