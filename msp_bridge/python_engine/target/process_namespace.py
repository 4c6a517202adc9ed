"""A process namespace for each job: whatever a mutant starts ends with it.

Theory of operation
-------------------
The problem. The kernel ends everything in a pid namespace when its number 1 ends. A process gets into a new namespace
only by being forked into it, and must not be number 1 itself: the kernel spares that one from signals without a
handler (SIGALRM, pytest-timeout, os.kill(os.getpid(), …)). So there are two forks more than without. A fork of a server
that has imported pytest and the project takes some milliseconds, for its page tables are copied and later freed.

The way out. A *maker*, forked from the host while it is small, makes the namespaces. Each begins with an *init*: number
1, which only waits. Its orphans are reaped by the kernel, for it ignores SIGCHLD. A fork server gets descriptors of
the namespace, enters it with `setns`, which holds for children alone, forks the job, and goes back. So the job is a
child of the fork server and nothing stands between: its exit code and its signal are what the server waits for.

States of a namespace: made when a server asks for it, taken by that server, ended. It is ended by killing its init. The
kernel then kills all others in it. The init is gone when they are, which `pidfd` shows.

Invariants. The job is reaped by the server before it waits for the init: the init can't be gone before. The death of
the host ends the maker, that ends the inits, and they end the jobs. Two servers may ask the maker at the same time: one
may get what was made for the other.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import socket
import struct
from dataclasses import dataclass
from typing import NoReturn

from . import descendants

CLONE_NEWPID = 0x20000000
PATIENCE_S = 5.0  # for the maker, and for the end of a namespace


@dataclass
class ProcessNamespace:
    """A namespace that this process has taken. `init` is the pid of its number 1, as seen from outside."""

    init: int
    descriptor: int
    pidfd: int

    def fork(self) -> int:
        """As os.fork; the child is in the namespace. Raises OSError."""
        own = os.open("/proc/self/ns/pid", os.O_RDONLY)
        pid = -1
        try:
            _enter(self.descriptor)
            pid = os.fork()
        finally:
            if pid != 0:
                _enter(own)
            os.close(own)
        return pid

    def kill(self) -> None:
        """Kill all that is in it."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.init, signal.SIGKILL)

    def end(self) -> None:
        """Kill all that is in it, and wait until it is gone; the job was reaped before."""
        self.kill()
        select.select([self.pidfd], [], [], PATIENCE_S)
        self.close()

    def close(self) -> None:
        """Let go of the descriptors."""
        os.close(self.descriptor)
        os.close(self.pidfd)


class NamespaceMaker:
    """The host's and the servers' side of the maker."""

    def __init__(self) -> None:
        """Start it, in a process with a single thread. Raises OSError where it can't make namespaces."""
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.pid = os.fork()
        if self.pid == 0:
            self._socket.close()
            _make_for(theirs)
        theirs.close()
        self._socket.settimeout(PATIENCE_S)
        try:
            trial = self.take()
            job = trial.fork()
            if job == 0:
                os._exit(0)
            os.waitpid(job, 0)
            trial.end()
        except BaseException:
            self.end()
            raise

    def take(self) -> ProcessNamespace:
        """A namespace that nobody else uses. Raises OSError."""
        self._socket.send(b"?")
        answer, descriptors, _, _ = socket.recv_fds(self._socket, 4, 2)
        if len(descriptors) != 2:
            for descriptor in descriptors:
                os.close(descriptor)
            raise OSError("no process namespace could be made")
        return ProcessNamespace(struct.unpack("i", answer)[0], *descriptors)

    def close(self) -> None:
        """In a job: let go of it."""
        self._socket.close()

    def end(self) -> None:
        """End it, and all namespaces."""
        self._socket.close()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        descendants.reap([self.pid])


def _make_for(servers: socket.socket) -> NoReturn:
    """The maker: one namespace for each message, until the socket or the parent ends."""
    try:
        descendants.die_with_parent()
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # here and in each init: the kernel reaps
        own = os.open("/proc/self/ns/pid", os.O_RDONLY)
        while servers.recv(1):
            init = _made(own)
            pidfd = os.pidfd_open(init)
            descriptor = os.open(f"/proc/{init}/ns/pid", os.O_RDONLY)
            socket.send_fds(servers, [struct.pack("i", init)], [descriptor, pidfd])
            os.close(descriptor)
            os.close(pidfd)
    finally:  # what has failed is seen by the end of the socket
        os._exit(0)


def _made(own: int) -> int:
    """The pid of the init of a new namespace. `own`: the descriptor of the maker's."""
    if _LIBC.unshare(CLONE_NEWPID):
        raise OSError(ctypes.get_errno(), "unshare")
    init = os.fork()
    if init == 0:
        descendants.die_with_parent()
        while True:
            signal.pause()
    _enter(own)
    return init


def _enter(namespace: int) -> None:
    """For the children of this process."""
    if _LIBC.setns(namespace, CLONE_NEWPID):
        number = ctypes.get_errno()
        raise OSError(number, f"setns: {os.strerror(number)}")


_LIBC = ctypes.CDLL(None, use_errno=True)
