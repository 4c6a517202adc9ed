"""Handshake: `initialize` comes first, and once, in the protocols that have it from LSP."""

from __future__ import annotations

from attrs import define

from msp_bridge.jsonrpc.messages import Call, ErrorCode, RpcError


@define
class Handshake:
    """What a client may send when, as `Service.admit`. A client whose `initialize` was refused may send another."""

    not_initialized: int  # the code for what comes before it
    done: bool = False

    def admit(self, call: Call) -> None:
        """Raises RpcError for a message that may not come now."""
        if call.method != "initialize" and not self.done:
            raise RpcError(self.not_initialized, f"{call.method[:100]} came before `initialize`: send that first")
        if call.method == "initialize" and self.done:
            raise RpcError(ErrorCode.INVALID_REQUEST, "`initialize` may be sent only once on a connection")
