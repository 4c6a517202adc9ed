"""Bodies of classes: what of their code says only where they stand.

From Python 3.13 the body of a class stores the number of its first line as `__firstlineno__`, by which `inspect` finds
its source. A line that is added above the class changes that number, and nothing of what the body does.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator, Mapping

from .loaded_modules import file_of

PLACE = "__firstlineno__"


def has_place(code: types.CodeType) -> bool:
    """Whether this is the body of a class, which stores its place."""
    return PLACE in code.co_names


def steps(body: types.CodeType) -> Iterator[tuple[str, object]]:
    """Yield what the body of a class does, each instruction with its argument, but for the storing of its place.

    Code that is nested in it has no argument.
    """
    from dis import get_instructions

    instructions = list(get_instructions(body))
    for step, following in zip(instructions, [*instructions[1:], None], strict=True):
        if following is None or (following.opname, following.argval) != ("STORE_NAME", PLACE):
            yield step.opname, None if isinstance(step.argval, types.CodeType) else step.argval


def place_of(kind: type) -> tuple[str, tuple[str, int]] | None:
    """Return the file of a class, and its qualified name with its first line; None where it has no place.

    A metaclass may answer `kind.name` with anything.
    """
    names: Mapping[str, object] = type.__getattribute__(kind, "__dict__")
    line = names.get(PLACE)
    file = file_of(sys.modules.get(str(names.get("__module__")))) if isinstance(line, int) else None
    if not isinstance(line, int) or file is None:
        return None
    return file, (type.__getattribute__(kind, "__qualname__"), line)
