"""Calls that nobody can note: of functions that trace, profile or audit what runs, or that `sys.monitoring` calls.

The interpreter says nothing of what runs while it calls one of these; before Python 3.12 the code itself says it
(`Probes`, `code_runs`). So what sets such a function is noted in its place.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any

from .audit_events import listen

SETTERS = {"sys.addaudithook", "sys.monitoring.register_callback", "sys.setprofile", "sys.settrace"}  # audit events
# Packages that call no function of a project so: doctest gives back what it has found, filelock asks itself whether a
# fork is safe. And our own.
HARMLESS = {"doctest", "filelock", "hypothesis", __name__.partition(".")[0]}


def note_unseen_calls(note: Callable[[], None]) -> None:
    """Call `note` whenever such a function is set, from now on."""

    def audit(_event: str, arguments: tuple[Any, ...]) -> None:
        if not isinstance(next(iter(arguments), ()), (types.NoneType, types.BuiltinFunctionType)):
            setter = sys._getframe(1).f_back  # None: it is set from C, in a thread that runs no Python
            if setter is None or str(setter.f_globals.get("__name__")).partition(".")[0] not in HARMLESS:
                note()

    if sys.version_info >= (3, 12):
        listen(SETTERS, audit)
