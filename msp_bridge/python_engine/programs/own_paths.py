"""Functions of `os.path` for what we do within tests: a test may have replaced what all others use.

blockbuster, for one, has `os.path.abspath` and `os.lstat` raise in an event loop: tests of asynchronous code use it.
"""

from __future__ import annotations

import os
import types
from typing import Any


def _own() -> types.SimpleNamespace:
    """Each function of `os.path`, with names of its own for all that it calls; `os` is one of these."""
    names: dict[str, Any] = {**vars(os.path), "os": types.SimpleNamespace(**vars(os))}
    for name, value in vars(os.path).items():
        if isinstance(value, types.FunctionType):
            names[name] = types.FunctionType(value.__code__, names, name, value.__defaults__, value.__closure__)
            names[name].__kwdefaults__ = value.__kwdefaults__
    names["os"].path = own = types.SimpleNamespace(**names)
    return own


PATHS = _own()
