"""Mutation: a mutant with what it takes to run it, and a name that people can read."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from attrs import frozen

from msp_bridge.adapter import Mutant, Result, Status

from .module import Module

REPLACED = re.compile(r"Replace(Binary|Comparison|Unary)Operator_(Delete_)?([A-Za-z]+)(?:_([A-Za-z]+))?")
SYMBOLS = {
    "Add": "+", "Sub": "-", "Mul": "*", "Div": "/", "FloorDiv": "//", "Mod": "%", "Pow": "**", "RShift": ">>",
    "LShift": "<<", "BitOr": "|", "BitAnd": "&", "BitXor": "^", "Eq": "==", "NotEq": "!=", "Lt": "<", "LtE": "<=",
    "Gt": ">", "GtE": ">=", "Is": "is", "IsNot": "is not", "UAdd": "+", "USub": "-", "Invert": "~", "Not": "not",
}  # fmt: skip
SHOWN = 60  # characters of the changed text in a description


@frozen
class Mutation:
    """One work item of cosmic-ray, for one version of its file. `start` and `end` are offsets in the file's text."""

    mutant: Mutant
    module: Module
    start: int
    end: int
    known: Result | None  # what is known without running it

    @classmethod
    def of(cls, row: Mapping[str, Any], module: Module) -> Mutation:
        """From what the discovery script said."""
        start, end = module.offset(row["start"]), module.offset(row["end"])
        replacement = module.replacement(row["replacement"])
        mutant = Mutant(
            path=module.path,
            mutator=mutator_name(row["operator"], row["args"]),
            location=module.source.location(start, end),
            replacement=replacement,
            description=_description(module.source.text[start:end], replacement, row["definition"]),
            handle=json.dumps([row["operator"], row["args"], row["occurrence"]]),
        )
        return cls(mutant, module, start, end, _known(mutant, row))

    @property
    def content(self) -> bytes:
        """The mutated file."""
        return self.module.mutated(self.start, self.end, self.mutant.replacement)


def mutator_name(operator: str, arguments: Mapping[str, Any]) -> str:
    """`core/ReplaceBinaryOperator_Add_Sub` is `BinaryOperator: + -> -`; other packages' operators keep their names."""
    provider, _, name = operator.partition("/")
    if provider != "core":
        name = operator
    elif found := REPLACED.fullmatch(name):
        old, new = SYMBOLS.get(found[3], found[3]), SYMBOLS.get(found[4], found[4])
        name = f"{found[1]}Operator: {old} -> {'(nothing)' if found[2] else new}"
    elif found := re.fullmatch(r"Replace(\w+)With(\w+)", name):
        name = f"{found[1]} -> {found[2]}"
    return f"{name} ({', '.join(f'{key}={value}' for key, value in arguments.items())})" if arguments else name


def _description(old: str, new: str, definition: str | None) -> str:
    return f"{_shown(old)} -> {_shown(new)}" + (f" in {definition}" if definition else "")


def _shown(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SHOWN else f"{line[: SHOWN - 1]}…"


def _known(mutant: Mutant, row: Mapping[str, Any]) -> Result | None:
    if row["skipped"] is not None:
        return Result(mutant, Status.IGNORED, status_reason=f"skipped by cosmic-ray's filter: {row['skipped']}")
    if row["error"] is not None:
        return Result(mutant, Status.COMPILE_ERROR, status_reason=row["error"])
    return None
