"""Event loops of asyncio that an import has made: each fork gets descriptors of its own.

A loop has a pair of sockets by which it is woken, and an epoll that watches them. Forks would share both: what one
registers or wakes, the loops of all do. As long as the loop has not begun, nothing is in either that a new one lacks.
"""

from __future__ import annotations

import gc
import os
import select
import selectors
import socket
import sys
from typing import Any

LOOPS = "asyncio.selector_events"
EPOLL = getattr(selectors, "EpollSelector", None)  # of Linux


def idle_loops() -> list[Any]:
    """The loops of this process that wait for nothing but to be woken. After `gc.freeze` none is found."""
    if LOOPS not in sys.modules:
        return []
    kind = sys.modules[LOOPS].BaseSelectorEventLoop
    # By the type: an object may answer anything when it is asked for its class.
    return [each for each in gc.get_objects() if issubclass(type(each), kind) and _is_idle(each)]


def descriptors(loop: Any) -> list[int]:
    """The numbers that `renew` gives another meaning."""
    return [each.fileno() for each in (loop._ssock, loop._csock, loop._selector)]


def renew(loop: Any) -> None:
    """In a fork: have descriptors of its own, under the same numbers. Raises OSError."""
    for old, new in zip((loop._ssock, loop._csock), socket.socketpair(), strict=True):
        new.setblocking(False)
        _replace(old.fileno(), new.detach())
    with select.epoll() as epoll:
        epoll.register(loop._ssock, select.EPOLLIN)
        _replace(loop._selector.fileno(), os.dup(epoll.fileno()))


def _replace(number: int, new: int) -> None:
    os.dup2(new, number, inheritable=False)
    os.close(new)


def _is_idle(loop: Any) -> bool:
    of_it = vars(loop)  # a subclass may lack what it should have made, or say that it has
    selector, waker = of_it.get("_selector"), of_it.get("_ssock")
    if type(selector) is not EPOLL or waker is None or of_it.get("_thread_id") is not None:
        return False
    return [key.fd for key in (selector.get_map() or {}).values()] == [waker.fileno()]
