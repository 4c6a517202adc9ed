"""File URIs: what they name on this machine."""

from __future__ import annotations

from urllib.parse import urlsplit
from urllib.request import url2pathname

from msp_bridge.jsonrpc.messages import ErrorCode, RpcError


def path_of(uri: str, where: str) -> str:
    """The path that a file URI names (RFC 8089). Raises RpcError -32602 for any other URI, found at `where`."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme != "file" or parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
        raise RpcError(ErrorCode.INVALID_PARAMS, f"{where}: must be a file URI such as file:///a/b, not {uri[:80]!r}")
    return url2pathname(parts.path)
