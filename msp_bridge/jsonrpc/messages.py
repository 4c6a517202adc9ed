"""JSON-RPC 2.0 messages: how requests are read, how messages are written, and the error codes. Without I/O.

JSON is parsed and dumped by orjson where it can: it was the faster of cattrs' preconf back ends for what the bridge
sends (`benchmarks/json_backends.py`).
"""

import enum
import itertools
import json
import math
import re
from typing import Any, NoReturn

import orjson
from attrs import frozen

Id = int | float | str
MAX_PARTS = 1_000_000  # of a message: 250,000 paths, 40,000 mutants that are named one by one
PART = re.compile(rb'"(?:[^"\\]+|\\.)*+"?|[,\[{]', re.DOTALL)
Message = dict[str, Any]


class ErrorCode(enum.IntEnum):
    """The `code` of an error response; a dialect has codes of its own besides."""

    # JSON-RPC 2.0, section 5.1
    PARSE_ERROR = -32700
    INVALID_REQUEST = -32600
    METHOD_NOT_FOUND = -32601
    INVALID_PARAMS = -32602
    INTERNAL_ERROR = -32603
    REJECTED = -32000  # (ours) the server does not serve this client, and closes the connection: the message says why
    # Language Server Protocol 3.17, ErrorCodes: MSP leaves its own codes open ("Error messages: TODO")
    REQUEST_CANCELLED = -32800
    REQUEST_FAILED = -32803  # the request was valid, but it can't be carried out: the message says why


class RpcError(Exception):
    """A request failed. `message` is one clear sentence; `data` is any JSON value, or None."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code, self.message, self.data = code, message, data


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
                ErrorCode.INVALID_REQUEST, "batches are not supported; send each request as a message of its own"
            )
        case {"jsonrpc": "2.0", "method": str(method), "id": id, **rest} if _is_id(id):
            return Call(id, method, rest.get("params"))
        case {"jsonrpc": "2.0", "method": str(method), **rest} if "id" not in rest:
            return Call(None, method, rest.get("params"))
        case {"jsonrpc": "2.0", "method": str()}:
            raise RpcError(ErrorCode.INVALID_REQUEST, "the id of a request must be a number or a string")
        case {"method": str()}:
            raise RpcError(ErrorCode.INVALID_REQUEST, 'a message must say "jsonrpc": "2.0"')
    raise RpcError(ErrorCode.INVALID_REQUEST, "the message is not a JSON-RPC 2.0 request object")


def is_response(message: Any) -> bool:
    """Whether `message` is the response to a request."""
    return isinstance(message, dict) and "method" not in message and ("result" in message or "error" in message)


def id_of(message: Any) -> Id | None:
    """The id in a message, also in an invalid one: its sender waits for a response to it."""
    id: Any = message.get("id") if isinstance(message, dict) else None
    return id if _is_id(id) else None


def request(id: Id, method: str, params: Any) -> bytes:
    """A request, as the body of a message; without params where they are None."""
    body = {"jsonrpc": "2.0", "id": id, "method": method}
    return dump(body if params is None else body | {"params": params})


def notification(method: str, params: Any) -> bytes:
    """A notification, as the body of a message."""
    return dump({"jsonrpc": "2.0", "method": method, "params": params})


def response(id: Id | None, result: Any) -> bytes:
    """The response to a request that succeeded, as the body of a message."""
    return dump({"jsonrpc": "2.0", "id": id, "result": result})


def error_response(id: Id | None, error: RpcError) -> bytes:
    """The response to a request that failed, as the body of a message; `id` is None where it is unknown."""
    body = {"code": int(error.code), "message": error.message}
    if error.data is not None:
        body["data"] = error.data
    return dump({"jsonrpc": "2.0", "id": id, "error": body})


def _is_id(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)  # 1e999 becomes infinite, which JSON can't say
    return isinstance(value, int | str) and not isinstance(value, bool)


class NotJson(ValueError):
    """The bytes are not JSON in UTF-8, or nested too deeply."""


def parse(body: bytes, exactly: bool = False) -> Any:
    """The value that `body` says. Raises NotJson. Whole numbers from 2^64 on become floats, unless `exactly`."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        if b"\\u" not in body:
            raise NotJson(str(error)) from None
        return _parse_slowly(body, error)  # orjson refuses lone surrogates
    return _parse_slowly(body) if exactly else value


def has_too_many_parts(body: bytes) -> bool:
    """Whether `body` has more than MAX_PARTS strings, arrays, objects and commas: each takes up to 80 bytes, parsed.

    Looks into `body` only if the characters in its strings, which don't count, could make the difference.
    """
    if body.count(b'"') // 2 + sum(body.count(sign) for sign in (b",", b"[", b"{")) <= MAX_PARTS:
        return False
    return next(itertools.islice(PART.finditer(body), MAX_PARTS, None), None) is not None


def dump(value: Any) -> bytes:
    """`value` as compact JSON in UTF-8."""
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:
        # A file name that is no valid Unicode has lone surrogates: JSON can escape them, orjson doesn't.
        return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()


def _parse_slowly(body: bytes, refused: orjson.JSONDecodeError | None = None) -> Any:
    try:
        return json.loads(body.decode("utf-8"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise NotJson(str(refused or error)) from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
