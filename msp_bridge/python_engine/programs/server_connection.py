"""The channel between the host and a fork server, from before that one is forked: by the host, or by another server."""

from __future__ import annotations

import os
import socket

from ...isolation import descendants
from .channel import Channel


def begin_group() -> None:
    """In a server: it is a group of its own, which ends with its parent, and it has what its jobs leave."""
    descendants.die_with_parent()
    descendants.adopt_orphans()
    os.setpgid(0, 0)


class ServerConnection:
    """The channel between the host and a server that is yet to be forked, and the server's log."""

    def __init__(self, log: str) -> None:
        """Raises OSError: a full disk."""
        self._output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
        self.ours, self._theirs = socket.socketpair()

    def take(self) -> Channel:
        """In the server: what it talks to the host through, and prints to its log."""
        self.ours.close()
        begin_group()
        os.dup2(self._output, 1)
        os.dup2(self._output, 2)
        os.close(self._output)
        return Channel(self._theirs.fileno(), self._theirs.fileno())

    def leave(self) -> None:
        """In another process, once the server has been forked: let go of its end."""
        self._theirs.close()
        os.close(self._output)
