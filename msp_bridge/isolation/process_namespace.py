"""Process namespaces, each for one job after another: whatever a mutant starts ends with it.

Theory of operation
-------------------
The problem. The kernel ends everything in a pid namespace when its number 1 ends. A process gets into a new namespace
only by being forked into it, and must not be number 1 itself: the kernel spares that one from signals without a
handler (SIGALRM, pytest-timeout, os.kill(os.getpid(), …)). So a new namespace for each job is a fork more, and some
milliseconds until the kernel has ended it.

The way out. A server makes a namespace once, with its *init*: number 1, which only waits. It enters the namespace with
`setns`, which holds for children alone, forks the job, and goes back. So the job is a child of the server and nothing
stands between: its exit code and its signal are what the server waits for. Orphans are reaped by the kernel, because
the init ignores SIGCHLD. After the job has ended the init kills all others, again and again until there are none: a
fork that is under way fails. Then the next job has the namespace, if its world has the same parts: the largest pid,
by which processes are limited, stays as it is.

    free --fork--> has a job --reaped, cleared--> free
                       '--killed, or not cleared in time--> ended

The way back needs rights over the namespace that it leads to, which only root has over the machine's. So in a user
namespace the host first gets a pid namespace of its own (`continue_as_first`): itself as number 1, and outside a
process that waits for it. The host handles or ignores the signals that it may get, and runs no test.

Invariants. A namespace ends by the end of its init: the kernel then kills all others in it, and the init is gone when
they are. An init ends when its server ends: that one alone holds the other end of its socket. It holds no descriptor of
the server but the standard ones: who waits for the end of a channel does not wait for it. It handles no signal, so that
no job reaches it. A job holds nothing of its namespace, nor of others.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket

from . import descendants, kernel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

CLEARING_S = 5.0  # for the end of what a job has left
POLL_S = 0.001


class ProcessNamespace:
    """A namespace of this process, which is free for a job. `init` is the pid of its number 1, as seen from outside."""

    def __init__(self, parts: frozenset[str] = frozenset()) -> None:
        """`parts`: of the worlds that its jobs get. Raises OSError."""
        self.parts = parts
        self._socket, theirs = socket.socketpair()
        self._socket.settimeout(CLEARING_S)
        own = os.open("/proc/self/ns/pid", os.O_RDONLY)
        try:
            kernel.unshare(kernel.NEWPID)
            try:
                self.init = os.fork()
                if self.init == 0:
                    _be_init(theirs)
                self._descriptor = os.open("/proc/self/ns/pid_for_children", os.O_RDONLY)
            finally:
                kernel.set_namespace(own, kernel.NEWPID)
        finally:
            theirs.close()
            os.close(own)
        self.is_free = bool(self._socket.recv(1))  # the init has let go of all that this process has open

    def fork(self) -> int:
        """Fork as os.fork does; the child is in the namespace. Raises OSError."""
        own = os.open("/proc/self/ns/pid", os.O_RDONLY)
        pid = -1
        try:
            kernel.set_namespace(self._descriptor, kernel.NEWPID)
            pid = os.fork()
        finally:
            if pid != 0:
                kernel.set_namespace(own, kernel.NEWPID)
            os.close(own)
        self.is_free = False
        return pid

    def kill(self) -> None:
        """Kill all that is in it. It is free for no job any more."""
        self.is_free = False
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.init, signal.SIGKILL)

    def clear(self) -> None:
        """Kill all that is in it but its init, and wait until it is gone; the job was reaped before.

        Afterwards it is free, or it was killed.
        """
        with contextlib.suppress(OSError):
            self._socket.send(b"?")
            self.is_free = bool(self._socket.recv(1))

    def end(self) -> None:
        """Kill all that is in it, and wait until it is gone; the job was reaped before."""
        self.kill()
        descendants.reap([self.init])
        self.close()

    def close(self) -> None:
        """Let go of the descriptors."""
        os.close(self._descriptor)
        self._socket.close()


def continue_as_first() -> None:
    """Go on as number 1 of the pid namespace that this process has unshared; with its own /proc. Raises OSError there.

    Returns in a forked process. The calling one waits for that, and ends as it ends. Whichever ends, both do.
    """
    alive, held = os.pipe()
    first = os.fork()
    if first:
        _, status = os.waitpid(first, 0)
        descendants.end_as(os.waitstatus_to_exitcode(status))
    os.close(held)
    descendants.die_with_parent()
    if select.select([alive], [], [], 0)[0]:
        os._exit(0)  # it has ended before we asked for the signal
    os.close(alive)
    kernel.mount_proc()


def _be_init(server: socket.socket) -> NoReturn:
    """Clear the namespace whenever that is asked for, until the server ends."""
    try:
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            with contextlib.suppress(OSError):  # the C library keeps some for itself
                signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps
        os.closerange(3, server.fileno())
        os.closerange(server.fileno() + 1, os.sysconf("SC_OPEN_MAX"))
        is_first = os.getpid() == 1  # else a signal to all would reach others
        while is_first and server.send(b".") and server.recv(1):
            with contextlib.suppress(ProcessLookupError):  # none is left
                while True:
                    os.kill(-1, signal.SIGKILL)
                    select.select([], [], [], POLL_S)
    finally:
        os._exit(0)
