"""RpcError: what a peer is told when its request fails, and the codes for it."""

from __future__ import annotations

from typing import Any

# JSON-RPC 2.0, section 5.1
PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
REFUSED = -32000  # (ours) the server doesn't serve this client, and closes the connection: the message says why
# Language Server Protocol 3.17, ErrorCodes: MSP leaves its own codes open ("Error messages: TODO")
REQUEST_CANCELLED = -32800
REQUEST_FAILED = -32803  # the request was right, but it can't be done: the message says why


class RpcError(Exception):
    """A request failed. `message` is one clear sentence; `data` is any JSON value, or None."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code, self.message, self.data = code, message, data
