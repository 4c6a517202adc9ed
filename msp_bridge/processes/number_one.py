"""Number 1 of a PID namespace: with it, the kernel ends whatever a tool has started. Linux, where it is permitted.

Theory of operation
-------------------
The problem. A process in a session of its own, whose ancestors have all been killed at once, is nobody's child any
more. No process of ours is left that could end it.

The way out. The supervisor forks this process into a new PID namespace, and it forks the tool. When number 1 of a
namespace ends, the kernel kills all others in it, however they strayed. It ends when the supervisor does, by the
parent-death signal, which nobody can catch or lose.

What the tool sees. Other process ids, in a /proc of its own that has only what the tool started. They don't begin at 1:
programs name files in /tmp by their process id, and would find those of others. A tool that is given the id of a
process of ours must do without (`pid_namespace=False`).

States: waiting at the gate, until the supervisor is known to live; running the tool; reporting its end (once); reaping
orphans until nobody is left, or the supervisor kills it.

Where it is permitted: for a process with CAP_SYS_ADMIN. Others would need a user namespace, in which the files of other
owners are nobody's and setuid programs don't work: a tool would give other results there than alone.
"""

from __future__ import annotations

import ctypes
import os
import struct

TYPE_CHECKING = False  # importing these takes longer than all the rest
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

CLONE_NEWNS, CLONE_NEWPID = 0x20000, 0x20000000
MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REC, MS_SLAVE = 2, 4, 8, 16384, 1 << 19
PIDS = 20000  # the first process id is a random one of so many
REFUSED = 111  # the exit code of a number 1 that may not mount /proc
PACKED = struct.Struct("i")

_libc = ctypes.CDLL(None, use_errno=True)


def start(become: Callable[[], None], run: Callable[[], NoReturn]) -> tuple[int, int] | None:
    """From a process with a single thread: the pid of number 1, and a pipe that gives `status` the tool's end.

    `become` is called in number 1, before anything else; `run` becomes the tool. None: it is not permitted.
    """
    own = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
    try:
        if _libc.unshare(CLONE_NEWPID):
            return None
        reader, writer = os.pipe()
        gate, key = os.pipe()
        number_one = os.fork()
        if number_one == 0:
            os.close(key)
            os.close(reader)
            try:
                become()
                _serve(gate, writer, run)
            finally:
                os._exit(REFUSED)
        _libc.setns(own, CLONE_NEWPID)  # for later children
        os.close(gate)
        os.close(writer)
        os.write(key, b"!")
        os.close(key)
        if os.read(reader, 1):
            return number_one, reader
        os.close(reader)
        os.waitpid(number_one, 0)
        return None
    finally:
        os.close(own)


def status(reader: int) -> int | None:
    """The tool's wait status; None when number 1 was killed."""
    data = os.read(reader, PACKED.size)
    return PACKED.unpack(data)[0] if len(data) == PACKED.size else None


def _serve(gate: int, writer: int, run: Callable[[], NoReturn]) -> NoReturn:
    if not os.read(gate, 1):  # the supervisor was killed before the parent-death signal was set
        os._exit(0)
    if not _mount_proc():
        os._exit(REFUSED)
    _begin_elsewhere()
    os.write(writer, b"!")
    tool = os.fork()
    if tool == 0:
        run()
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    while True:
        try:
            pid, ended = os.wait()
        except ChildProcessError:
            os._exit(0)
        if pid == tool:
            os.write(writer, PACKED.pack(ended))


def _mount_proc() -> bool:
    """Whether there is a /proc of this namespace now, for this process and its children."""
    return not (
        _libc.unshare(CLONE_NEWNS)
        or _libc.mount(b"none", b"/", None, MS_REC | MS_SLAVE, None)
        or _libc.mount(b"proc", b"/proc", b"proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, None)
    )


def _begin_elsewhere() -> None:
    try:
        with open("/proc/sys/kernel/ns_last_pid", "w") as file:
            file.write(str(300 + int.from_bytes(os.urandom(4), "big") % PIDS))
    except OSError:
        return  # a kernel without it, or a /proc/sys that is read-only
