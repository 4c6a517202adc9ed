"""Event loops of asyncio that an import has made: each fork gets the descriptors of its own.

A loop has a pair of sockets by which it is woken, and an epoll that watches them. Forks would share both: what one
registers or wakes, the loops of all do. As long as the loop has not begun, nothing is in either that a new one lacks.
"""

from __future__ import annotations

import gc
import os
import select
import socket
import sys
from typing import Any

LOOPS = "asyncio.selector_events"


def idle_loops() -> list[Any]:
    """The loops of this process that wait for nothing but to be woken. After `gc.freeze` none is found."""
    if LOOPS not in sys.modules:
        return []
    kind = sys.modules[LOOPS].BaseSelectorEventLoop
    # By the type: an object may answer anything when it is asked for its class.
    return [each for each in gc.get_objects() if issubclass(type(each), kind) and _is_idle(each)]


def descriptors(loop: Any) -> list[int]:
    """The numbers that `renew` gives another meaning."""
    epoll = _epoll(loop)
    return [loop._ssock.fileno(), loop._csock.fileno(), *([] if epoll is None else [epoll.fileno()])]


def renew(loop: Any) -> None:
    """In a fork: have descriptors of its own, under the same numbers. Raises OSError."""
    for old, new in zip((loop._ssock, loop._csock), socket.socketpair(), strict=True):
        new.setblocking(False)
        _replace(old.fileno(), new.detach())
    if (epoll := _epoll(loop)) is not None:
        with select.epoll() as own:
            _replace(epoll.fileno(), os.dup(own.fileno()))
        epoll.register(loop._ssock, select.EPOLLIN)


def _replace(number: int, new: int) -> None:
    os.dup2(new, number, inheritable=False)
    os.close(new)


def _is_idle(loop: Any) -> bool:
    if loop.is_closed() or loop.is_running() or (_epoll(loop) is None and hasattr(loop._selector, "fileno")):
        return False  # it may watch by what is unknown here
    return [key.fd for key in loop._selector.get_map().values()] == [loop._ssock.fileno()]


def _epoll(loop: Any) -> Any:
    """The epoll of its selector; another kind of selector may have none."""
    inner = getattr(loop._selector, "_selector", None)
    return inner if isinstance(inner, getattr(select, "epoll", ())) else None
