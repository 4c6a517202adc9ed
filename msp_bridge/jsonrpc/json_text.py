"""JSON text: parse and dump, by orjson where it can.

orjson was the faster of cattrs' preconf back ends for what the bridge sends (`benchmarks/json_backends.py`).
"""

from __future__ import annotations

import json
from typing import Any, NoReturn

import orjson


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
