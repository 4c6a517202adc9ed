"""What a JSON-RPC 2.0 message is: a request, a notification, a response, or none of them. Without I/O."""

from __future__ import annotations

from typing import Any

from attrs import frozen

from msp_bridge.rpc import errors
from msp_bridge.rpc.errors import RpcError

Id = int | float | str


@frozen
class Call:
    """A request (with an id) or a notification (without)."""

    id: Id | None
    method: str
    params: Any


def call_of(message: Any) -> Call:
    """The request or notification that `message` is. Raises RpcError -32600 when it is neither."""
    match message:
        case list():
            raise RpcError(
                errors.INVALID_REQUEST, "batches are not supported; send each request as a message of its own"
            )
        case {"jsonrpc": "2.0", "method": str(method), "id": id, **rest} if _is_id(id):
            return Call(id, method, rest.get("params"))
        case {"jsonrpc": "2.0", "method": str(method), **rest} if "id" not in rest:
            return Call(None, method, rest.get("params"))
        case {"jsonrpc": "2.0", "method": str()}:
            raise RpcError(errors.INVALID_REQUEST, "the id of a request must be a number or a string")
        case {"method": str()}:
            raise RpcError(errors.INVALID_REQUEST, 'a message must say "jsonrpc": "2.0"')
    raise RpcError(errors.INVALID_REQUEST, "the message is not a JSON-RPC 2.0 request object")


def is_response(message: Any) -> bool:
    """Whether `message` answers a request of ours."""
    return isinstance(message, dict) and "method" not in message and ("result" in message or "error" in message)


def failure_of(error: Any) -> RpcError:
    """What a peer that may not keep to the rules tells of a failure."""
    if not isinstance(error, dict):
        return RpcError(0, str(error))
    code = error.get("code")
    return RpcError(code if isinstance(code, int) else 0, str(error.get("message")), error.get("data"))


def id_of(message: Any) -> Id | None:
    """The id in a message, also in a faulty one: its sender waits for an answer to it."""
    id: Any = message.get("id") if isinstance(message, dict) else None
    return id if _is_id(id) else None


def _is_id(value: Any) -> bool:
    return isinstance(value, int | float | str) and not isinstance(value, bool)
