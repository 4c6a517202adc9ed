"""A process namespace for each job: whatever a mutant starts ends with it.

Theory of operation
-------------------
The problem. The kernel ends everything in a pid namespace when its number 1 ends. A process gets into a new namespace
only by being forked into it, and must not be number 1 itself: the kernel spares that one from signals without a
handler (SIGALRM, pytest-timeout, os.kill(os.getpid(), …)). So there are two forks more than without. A fork of a server
that has imported pytest and the project takes some milliseconds, because its page tables are copied and later freed.

The way out. A *maker*, forked from the host while it is small, makes the namespaces. Each begins with an *init*: number
1, which only waits. Its orphans are reaped by the kernel, because it ignores SIGCHLD. A fork server gets descriptors of
the namespace, enters it with `setns`, which holds for children alone, forks the job, and goes back. So the job is a
child of the fork server and nothing stands between: its exit code and its signal are what the server waits for.

The way back needs rights over the namespace that it leads to, which only root has over the machine's. So in a user
namespace the host first gets a pid namespace of its own (`continue_as_first`): itself as number 1, and outside a
process that waits for it. The host handles or ignores the signals that it may get, and runs no test.

States of a namespace: made when a server asks for it, taken by that server, ended. It is ended by killing its init. The
kernel then kills all others in it. The init is gone when they are, which `pidfd` shows.

Invariants. The job is reaped by the server before it waits for the init: the init can't be gone before. The death of
the host ends the maker, that ends the inits, and they end the jobs. An init sees the end of the maker by a pipe that
the maker alone holds: a parent-death signal may be asked for too late. Two servers may ask the maker at the same time:
one may get what was made for the other. Maker and inits hold no descriptor of the host but its standard ones: who waits
for the end of its channel does not wait for them.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import struct
import sys

from . import descendants, kernel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

MAKER_TIMEOUT_S = 5.0  # for the maker, and for the end of a namespace
REASON_LIMIT = 1000  # bytes of an answer


class ProcessNamespace:
    """A namespace that this process has taken. `init` is the pid of its number 1, as seen from outside."""

    def __init__(self, init: int, descriptor: int, pidfd: int) -> None:
        self.init, self.descriptor, self.pidfd = init, descriptor, pidfd

    def fork(self) -> int:
        """Fork as os.fork does; the child is in the namespace. Raises OSError."""
        own = os.open("/proc/self/ns/pid", os.O_RDONLY)
        pid = -1
        try:
            kernel.set_namespace(self.descriptor, kernel.NEWPID)
            pid = os.fork()
        finally:
            if pid != 0:
                kernel.set_namespace(own, kernel.NEWPID)
            os.close(own)
        return pid

    def kill(self) -> None:
        """Kill all that is in it."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)  # by now, its pid may be that of another process

    def end(self) -> None:
        """Kill all that is in it, and wait until it is gone; the job was reaped before."""
        self.kill()
        select.select([self.pidfd], [], [], MAKER_TIMEOUT_S)
        self.close()

    def close(self) -> None:
        """Let go of the descriptors."""
        os.close(self.descriptor)
        os.close(self.pidfd)


class NamespaceMaker:
    """The host's and the servers' side of the maker."""

    def __init__(self) -> None:
        """Start it, in a process with a single thread. Raises OSError. `take` shows whether it can make namespaces."""
        if not hasattr(os, "pidfd_open"):
            raise OSError("this Python has no os.pidfd_open")
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.pid = os.fork()
        if self.pid == 0:
            _make_for(theirs)
        theirs.close()
        self._socket.settimeout(MAKER_TIMEOUT_S)

    def take(self) -> ProcessNamespace:
        """Return a namespace that nobody else uses. Raises OSError."""
        self._socket.send(b"?")
        answer, descriptors, _, _ = socket.recv_fds(self._socket, REASON_LIMIT, 2)
        if len(descriptors) != 2:
            for descriptor in descriptors:
                os.close(descriptor)
            raise OSError(answer.decode(errors="replace") or "the process that makes process namespaces has ended")
        return ProcessNamespace(struct.unpack("i", answer)[0], *descriptors)

    def close(self) -> None:
        """Let go of the maker, in a job."""
        self._socket.close()

    def end(self) -> None:
        """End the maker, and all namespaces."""
        self._socket.close()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        descendants.reap([self.pid])


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


def _make_for(servers: socket.socket) -> NoReturn:
    """The maker: one namespace, or why there is none, for each message; until the socket or the parent ends."""
    try:
        descendants.die_with_parent()
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # here and in each init: the kernel reaps
        os.closerange(3, servers.fileno())
        os.closerange(servers.fileno() + 1, os.sysconf("SC_OPEN_MAX"))
        own = os.open("/proc/self/ns/pid", os.O_RDONLY)
        alive, held = os.pipe()  # for the inits, while this process holds the other end
        while servers.recv(1):
            _answer(servers, own, alive, held)
    except ConnectionError:
        pass  # nobody asks any more
    except BaseException:  # nothing may reach the stack below, which belongs to the host
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(0)


def _answer(servers: socket.socket, own: int, alive: int, held: int) -> None:
    """Send the pid of an init with the descriptors of its namespace, or the reason why there is none."""
    opened: list[int] = []
    try:
        init = _made(own, alive, held)
        opened.append(os.open(f"/proc/{init}/ns/pid", os.O_RDONLY))
        opened.append(os.pidfd_open(init))
    except OSError as error:
        servers.send((error.strerror or str(error)).encode()[:REASON_LIMIT])
    else:
        socket.send_fds(servers, [struct.pack("i", init)], opened)
    finally:
        for descriptor in opened:
            os.close(descriptor)


def _made(own: int, alive: int, held: int) -> int:
    """The pid of the init of a new namespace. `own`: the descriptor of the maker's."""
    kernel.unshare(kernel.NEWPID)
    try:
        init = os.fork()
        if init == 0:
            os.close(held)
            os.read(alive, 1)
            os._exit(0)
    finally:
        kernel.set_namespace(own, kernel.NEWPID)
    return init
