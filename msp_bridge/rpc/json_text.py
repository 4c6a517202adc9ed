"""JSON text: parse and dump, by orjson where it can.

orjson was the faster of cattrs' preconf back ends for what the bridge sends (`benchmarks/json_backends.py`).
"""

from __future__ import annotations

import json
from typing import Any, NoReturn

import orjson


class NotJson(ValueError):
    """The bytes are not JSON in UTF-8, or nested too deeply."""


def parse(body: bytes) -> Any:
    """The value that `body` says. Raises NotJson."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        return _parse_with_lone_surrogates(body, error)


def dump(value: Any) -> bytes:
    """`value` as compact JSON in UTF-8."""
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:
        # A file name that is no valid Unicode has lone surrogates: JSON can escape them, orjson doesn't.
        return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()


def _parse_with_lone_surrogates(body: bytes, refused: orjson.JSONDecodeError) -> Any:
    if b"\\u" not in body:
        raise NotJson(str(refused))
    try:
        return json.loads(body.decode("utf-8"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise NotJson(str(refused)) from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
