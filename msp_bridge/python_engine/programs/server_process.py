"""A fork server as the host sees it: its process and the channel to it, from before it is forked until its end."""

from __future__ import annotations

import os
import socket
import time
import traceback
from collections.abc import Callable, Iterable
from functools import partial

from ...isolation import descendants
from .channel import Channel
from .controls import HOLDS_S
from .forked import Forked
from .live_code import Segment
from .messages import Reload, Reloaded

SERVER_END_S = 3.0  # for a server that may be busy with its jobs
POLL_S = 0.01
BARE, PLAIN = "bare", "plain"  # kinds of servers for projects that pytest imports: see `servers`


def begin_group() -> None:
    """In a server: it is a group of its own, which ends with its parent, and it has what its jobs leave."""
    descendants.die_with_parent()
    descendants.adopt_orphans()
    os.setpgid(0, 0)


class ServerProcess:
    """A process that is to run a `ForkServer`, forked by the host or by another server; and the server's log."""

    def __init__(self, log: str) -> None:
        """Raises OSError: a full disk."""
        self._log = log
        self._output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
        self.socket, self._theirs = socket.socketpair()
        self.channel = Channel(self.socket.fileno(), self.socket.fileno())
        self.pid = 0  # it is not forked yet
        self.since = time.monotonic()  # of its start
        self.serves = True  # or will before anything of the project can hang it

    def fork(self, serve: Callable[[Channel], object], private: Iterable[int]) -> None:
        """`private` are descriptors of this process that the forked one has to close; that one raises `Forked`."""
        self.pid = os.fork()
        if self.pid == 0:
            try:
                for descriptor in private:
                    os.close(descriptor)
                forked = Forked(partial(serve, self.take()))
            except BaseException:
                traceback.print_exc()
                os._exit(70)
            raise forked
        self.leave()

    def take(self) -> Channel:
        """In the server: what it talks to the host through, and prints to its log."""
        self.socket.close()
        begin_group()
        os.dup2(self._output, 1)
        os.dup2(self._output, 2)
        os.close(self._output)
        return Channel(self._theirs.fileno(), self._theirs.fileno())

    def leave(self) -> None:
        """In another process, once the server has been forked: let go of its end."""
        self._theirs.close()
        os.close(self._output)

    def printed(self) -> str:
        """The end of what it and its jobs have printed."""
        with open(self._log, encoding="utf-8", errors="replace") as log:
            return log.read().strip()[-1500:]

    @property
    def is_old(self) -> bool:
        """Whether what it has imported may be too old for tests that go by the time: see `kill_confirmation`."""
        return time.monotonic() - self.since > HOLDS_S

    @property
    def has_ended(self) -> bool:
        """Whether it was ended."""
        return self.socket.fileno() < 0

    def reload(self, segment: Segment) -> Reloaded | None:
        """Give the live functions the code of an edited file; other answers are dropped. None: the server has ended."""
        self.channel.send(Reload(do="reload", segment=segment))
        return next((answer for answer in self.channel.messages() if answer.get("do") == "reloaded"), None)

    def end(self) -> None:
        """End it with all its jobs and what they started."""
        self.socket.close()  # it then ends its jobs and itself
        if not (self.serves and self._ends()):
            descendants.end_group(self.pid)
            self._ends()

    def _ends(self) -> bool:
        deadline = time.monotonic() + SERVER_END_S
        while time.monotonic() < deadline:
            if self._is_gone():
                return True
            time.sleep(POLL_S)
        return False

    def _is_gone(self) -> bool:
        try:
            return os.waitpid(self.pid, os.WNOHANG)[0] != 0
        except ChildProcessError:  # the fresh server has forked it, and reaps it
            try:
                os.kill(self.pid, 0)
            except ProcessLookupError:
                return True
            return False
