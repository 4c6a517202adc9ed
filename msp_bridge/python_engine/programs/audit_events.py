"""Audit events: one hook for all that the engine asks for.

Python calls each hook for every event, and one comes with each frame of a stack that is looked at. asyncio's debug mode
looks at the whole stack for each future, so tests of anyio took several times as long while nine hooks were set.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any

Listener = Callable[[str, tuple[Any, ...]], object]  # gets the name of the event and its arguments

_listeners: dict[str, tuple[Listener, ...]] = {}  # by event


def listen(events: Iterable[str], listener: Listener) -> None:
    """Call `listener` at each of these events, from now on, in this process and its forks.

    Its caller is `_tell`, whose caller raises the event.
    """
    if not _listeners:
        sys.addaudithook(_tell)
    for event in events:
        _listeners[event] = (*_listeners.get(event, ()), listener)


def _tell(event: str, arguments: tuple[Any, ...], listening: Callable[[str], Any] = _listeners.get) -> None:
    if (found := listening(event)) is not None:
        for listener in found:
            listener(event, arguments)
