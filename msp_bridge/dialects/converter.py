"""The strict converter between JSON values and attrs types: camelCase on the wire, None left out, no type bent."""

from __future__ import annotations

import enum
import re
from operator import attrgetter
from typing import Any, NewType, TypeVar

import attrs
import cattrs
from cattrs.cols import list_structure_factory
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, make_mapping_structure_fn, override
from cattrs.preconf.orjson import make_converter

from msp_bridge.dialects.msp_types import OneBased
from msp_bridge.jsonrpc.messages import ErrorCode, RpcError

T = TypeVar("T")
Token = NewType("Token", object)  # an integer or a string, as in LSP ("Partial Result Progress", "Work Done Progress")

# A key or an index, which stays as it is, or the name of an attribute.
STEP = re.compile(r"""\['(?:[^'\\]|\\.)*'\]|\["(?:[^"\\]|\\.)*"\]|\[\d+\]|(\.[a-z_]+)""")


class WrongShape(ValueError):
    """A JSON value doesn't fit its type. `faults` names every fault, each with its path and reason."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__("; ".join(faults))
        self.faults = faults


class StrictConverter:
    """Structures and unstructures any attrs class."""

    def __init__(self) -> None:
        self._converter = make_converter(detailed_validation=True)
        for exact in (int, str, bool):
            self._converter.register_structure_hook(exact, _exactly(exact))
        self._converter.register_structure_hook(float, _number)
        self._converter.register_structure_hook(OneBased, _one_based)
        self._converter.register_structure_hook(Token, _token)
        self._converter.register_structure_hook_factory(_is_list, self._list)
        self._converter.register_structure_hook_factory(_is_dict, self._dict)
        self._converter.register_structure_hook_factory(attrs.has, self._structure_class)
        # orjson would take an Enum as it is, but not everything that is dumped goes through orjson (`jsonrpc.messages`)
        self._converter.register_unstructure_hook(enum.Enum, attrgetter("value"))
        self._converter.register_unstructure_hook_factory(attrs.has, self._unstructure_class)

    def structure(self, value: Any, expected: type[T]) -> T:
        """`value` as an `expected`. Raises WrongShape with every fault."""
        try:
            return self._converter.structure(value, expected)
        except Exception as error:  # cattrs promises no base class for what hooks and validators raise
            faults = cattrs.transform_error(error, path="params", format_exception=lambda fault, _: _reason(fault))
            raise WrongShape([_path_first(fault) for fault in faults]) from None

    def params(self, params: Any, expected: type[T]) -> T:
        """The params of a message; absent ones are {}. Raises RpcError with every fault."""
        try:
            return self.structure({} if params is None else params, expected)
        except WrongShape as error:
            raise RpcError(ErrorCode.INVALID_PARAMS, str(error), {"faults": error.faults}) from None

    def unstructure(self, value: Any) -> Any:
        """`value` as a JSON value."""
        return self._converter.unstructure(value)

    def _structure_class(self, cls: type[Any]) -> Any:
        structure = make_dict_structure_fn(cls, self._converter, **_wire_names(cls))

        def structure_object(value: Any, _: Any) -> Any:
            if not isinstance(value, dict):
                raise TypeError(f"must be an object, not {_describe(value)}")
            return structure(value, cls)

        return structure_object

    def _unstructure_class(self, cls: type[Any]) -> Any:
        return make_dict_unstructure_fn(cls, self._converter, _cattrs_omit_if_default=True, **_wire_names(cls))

    def _list(self, expected: Any) -> Any:
        structure = list_structure_factory(expected, self._converter)

        def structure_array(value: Any, _: Any) -> Any:
            if not isinstance(value, list):
                raise TypeError(f"must be an array, not {_describe(value)}")
            return structure(value, expected)

        return structure_array

    def _dict(self, expected: Any) -> Any:
        structure = make_mapping_structure_fn(expected, self._converter, dict)

        def structure_map(value: Any, _: Any) -> Any:
            if not isinstance(value, dict):
                raise TypeError(f"must be an object, not {_describe(value)}")
            return structure(value, expected)

        return structure_map


def _is_list(expected: Any) -> bool:
    return getattr(expected, "__origin__", None) is list


def _is_dict(expected: Any) -> bool:
    return getattr(expected, "__origin__", None) is dict


def _exactly(expected: type[Any]) -> Any:
    names = {int: "a whole number", str: "a string", bool: "true or false"}

    def structure(value: Any, _: Any) -> Any:
        if type(value) is not expected:
            raise TypeError(f"must be {names[expected]}, not {_describe(value)}")
        return value

    return structure


def _number(value: Any, _: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"must be a number, not {_describe(value)}")
    return value


def _one_based(value: Any, _: Any) -> OneBased:
    if type(value) is not int or value < 1:
        raise ValueError(f"must be a whole number from 1 on, not {_describe(value)}")
    return OneBased(value)


def _token(value: Any, _: Any) -> Token:
    if type(value) not in (int, str):
        raise TypeError(f"must be an integer or a string, not {_describe(value)}")
    return Token(value)


def _wire_names(cls: type[Any]) -> dict[str, Any]:
    return {field.name: override(rename=camel_case(field.name)) for field in attrs.fields(cls)}


def camel_case(name: str) -> str:
    """`config_file_path` -> `configFilePath`."""
    head, *tail = name.split("_")
    return head + "".join(part.capitalize() for part in tail)


def _reason(error: BaseException) -> str:
    match error:
        case KeyError():
            return f"{camel_case(str(error.args[0]))} is missing"
        case cattrs.errors.ForbiddenExtraKeysError():
            return f"unknown: {', '.join(sorted(error.extra_fields))}"
        case ValueError() | TypeError():
            return str(error)
    return f"does not fit: {error}"


def _path_first(fault: str) -> str:
    """`reason @ params.config_file_path` -> `params.configFilePath: reason`."""
    reason, _, path = fault.partition(" @ params")
    return f"params{STEP.sub(lambda step: step[0] if step[1] is None else camel_case(step[0]), path)}: {reason}"


def _describe(value: Any) -> str:
    """What the JSON value is, short enough for an error message."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case dict():
            return "an object"
        case list():
            return "an array"
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."
