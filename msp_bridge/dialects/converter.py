"""The strict converter from JSON values to attrs types: camelCase on the wire, no type bent.

A client can send a million faults in a message of a few MB. So the first MAX_FAULTS end the search, and a fault is a
short text. cattrs' own detailed validation keeps an exception and its traceback for each: a thousand times the message.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NewType, TypeVar, get_args, get_type_hints

import attrs
from cattrs.preconf.orjson import make_converter

from msp_bridge.jsonrpc.messages import ErrorCode, RpcError
from msp_bridge.model import Position

T = TypeVar("T")
Token = NewType("Token", object)  # an integer or a string, as in LSP ("Partial Result Progress", "Work Done Progress")
OneBased = NewType("OneBased", int)  # of a model's position
Structure = Callable[[Any], Any]  # raises WrongShape

MAX_FAULTS = 5
MAX_SHOWN = 40  # characters of a value or a key in a fault
MISSING = object()
VALUES: dict[Any, tuple[str, Callable[[Any], bool]]] = {  # of each type that is no object: its name, and what fits
    int: ("a whole number", lambda value: type(value) is int),
    str: ("a string", lambda value: type(value) is str),
    bool: ("true or false", lambda value: type(value) is bool),
    float: ("a number", lambda value: type(value) in (int, float)),
    OneBased: ("a whole number from 1 on", lambda value: type(value) is int and value >= 1),
    Token: ("an integer or a string", lambda value: type(value) in (int, str)),
}


class WrongShape(ValueError):
    """A JSON value doesn't fit its type. `faults` are the first MAX_FAULTS at most, each as `path: reason`."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__("; ".join(faults))
        self.faults = faults


class StrictConverter:
    """Structures any attrs class."""

    def __init__(self) -> None:
        self._converter = make_converter(detailed_validation=False)
        for kind, (name, fits) in VALUES.items():
            self._converter.register_structure_hook(kind, partial(_fitting, name, fits))
        for kind, factory in ((list, self._list), (dict, self._dict)):
            self._converter.register_structure_hook_factory(partial(_is_generic, kind), factory)
        self._converter.register_structure_hook_factory(attrs.has, self._structure_class)

    def structure(self, value: Any, expected: type[T]) -> T:
        """`value` as an `expected`. Raises WrongShape."""
        try:
            return self._converter.structure(value, expected)
        except WrongShape as error:
            faults = [f"params{fault}" for fault in error.faults]
        raise WrongShape(faults)

    def params(self, params: Any, expected: type[T]) -> T:
        """The params of a message; absent ones are {}. Raises RpcError with the first faults."""
        try:
            return self.structure({} if params is None else params, expected)
        except WrongShape as error:
            raise RpcError(ErrorCode.INVALID_PARAMS, str(error), {"faults": error.faults}) from None

    def _structure_class(self, cls: type[Any]) -> Any:
        types = get_type_hints(cls) if cls is not Position else {"line": OneBased, "column": OneBased}
        fields = [
            (field.name, camel_case(field.name), self._structure(types[field.name]), field.default is attrs.NOTHING)
            for field in attrs.fields(cls)
        ]

        def structure_object(value: Any, _: Any) -> Any:
            if not isinstance(value, dict):
                raise _wrong("an object", value)
            made, faults = {}, []
            for name, key, structure, needed in fields:
                part = value.get(key, MISSING)
                try:
                    if part is not MISSING:
                        made[name] = structure(part)
                    elif needed:
                        faults.append(f".{key}: {key} is missing")
                except WrongShape as error:
                    faults += [f".{key}{fault}" for fault in error.faults]
            if not faults:
                try:
                    return cls(**made)
                except ValueError as error:  # of a validator
                    faults.append(f": {error}")
            raise WrongShape(faults[:MAX_FAULTS])

        return structure_object

    def _structure(self, expected: Any) -> Structure:
        hook = self._converter.get_structure_hook(expected)
        return lambda value: hook(value, expected)

    def _list(self, expected: Any) -> Any:
        structure = self._structure(get_args(expected)[0])

        def structure_array(value: Any, _: Any) -> Any:
            if not isinstance(value, list):
                raise _wrong("an array", value)
            return _all(enumerate(value), structure)

        return structure_array

    def _dict(self, expected: Any) -> Any:
        structure = self._structure(get_args(expected)[1])

        def structure_map(value: Any, _: Any) -> Any:
            if not isinstance(value, dict):
                raise _wrong("an object", value)
            return dict(zip(value, _all(value.items(), structure), strict=True))

        return structure_map


def _all(parts: Iterable[tuple[int | str, Any]], structure: Structure) -> list[Any]:
    """The values of `parts`, each with its key or index. Raises WrongShape as soon as there are MAX_FAULTS."""
    made: list[Any] = []
    faults: list[str] = []
    for key, part in parts:
        try:
            made.append(structure(part))
        except WrongShape as error:
            faults += [f"[{_shown(key)}]{fault}" for fault in error.faults]
            if len(faults) >= MAX_FAULTS:
                break
    if faults:
        raise WrongShape(faults[:MAX_FAULTS])
    return made


def _is_generic(kind: type, expected: Any) -> bool:
    return getattr(expected, "__origin__", None) is kind


def _fitting(name: str, fits: Callable[[Any], bool], value: Any, _: Any) -> Any:
    if not fits(value):
        raise _wrong(name, value)
    return value


def camel_case(name: str) -> str:
    """`config_file_path` -> `configFilePath`."""
    head, *tail = name.split("_")
    return head + "".join(part.capitalize() for part in tail)


def _wrong(expected: str, value: Any) -> WrongShape:
    return WrongShape([f": must be {expected}, not {_described(value)}"])


def _described(value: Any) -> str:
    """Describe the JSON value, short enough for an error message."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case dict():
            return "an object"
        case list():
            return "an array"
    return _shown(value)


def _shown(value: Any) -> str:
    text = repr(value[: MAX_SHOWN + 1] if isinstance(value, str) else value)
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 3] + "..."


STRICT = StrictConverter()


def reads(expected: type[T]) -> Callable[[Any], T]:
    """Make the function that reads params as an `expected`, for a `Method`. It raises RpcError."""
    return partial(STRICT.params, expected=expected)
