"""The calls of the Linux kernel for which Python has no function, by ctypes: mounts, namespaces, capabilities, filters.

Each raises OSError with the name of the call. `why_not` says where there are none of them; `prctl` does nothing there.
Two of them some Pythons have: the builds that uv installs were made with the headers of an older kernel
(https://github.com/astral-sh/uv/issues/9374, https://github.com/astral-sh/uv/issues/15081).
"""

from __future__ import annotations

import contextlib
import fcntl  # here, not where it is used: importing it in every child would cost more than all else
import os
import socket
import struct
import sys
from collections.abc import Iterator, Sequence

TYPE_CHECKING = False  # each import costs milliseconds whenever a command is isolated
if TYPE_CHECKING:
    from typing import Any

try:
    import ctypes

    _libc: Any = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
except ImportError:  # an interpreter that was built without libffi
    _libc = None

NEWNS, NEWIPC, NEWUSER, NEWPID, NEWNET = 0x20000, 0x8000000, 0x10000000, 0x20000000, 0x40000000
BIND, RECURSIVE = 4096, 16384
SET_PDEATHSIG, CAPBSET_DROP, SET_CHILD_SUBREAPER = 1, 24, 36  # of prctl

_RDONLY, _REMOUNT, _PRIVATE = 1, 32, 1 << 18
_NOSUID, _NODEV, _NOEXEC = 2, 4, 8
_LOCKED = {2: 2, 4: 4, 8: 8, 1024: 1024, 2048: 2048, 4096: 1 << 21}  # statvfs's flags to mount's, for a remount
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1
_CAPABILITY_VERSION_3 = 0x20080522
_MEMFD_CLOEXEC, _PIDFD_OPEN = 1, 434  # the latter is the number of a call, on each kind of machine
_SET_SECCOMP, _SECCOMP_MODE_FILTER, _SET_NO_NEW_PRIVS = 22, 2, 38  # of prctl

# The capabilities by which root reaches the machine from within namespaces. By number, as no header is there:
# DAC_READ_SEARCH opens any file of a file system by its handle, SYS_MODULE, SYS_RAWIO, SYS_PTRACE, SYS_ADMIN mounts and
# unmounts, SYS_BOOT, SYS_TIME, MKNOD makes block devices, MAC_OVERRIDE, MAC_ADMIN, SYSLOG, PERFMON, BPF, and
# CHECKPOINT_RESTORE.
_OF_THE_MACHINE = sum(1 << number for number in (2, 16, 17, 19, 21, 22, 25, 27, 32, 33, 34, 38, 39, 40))

Capabilities = tuple[int, int, int, int]  # effective, permitted, inheritable, bounding: a bit for each


def why_not() -> str:
    """Why this process can't call the kernel; empty where it can."""
    if sys.platform != "linux":
        return f"namespaces are a feature of Linux, not of {sys.platform}"
    return "" if _libc else "this Python has no ctypes"


def prctl(option: int, value: int) -> None:
    """Set an attribute of this process."""
    if _libc is not None:
        _call("prctl", option, value, 0, 0, 0)


def filter_calls(program: bytes) -> None:
    """Have the kernel ask `program`, in BPF, at each system call of this process and of what it starts."""

    class Filter(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("program", ctypes.c_char_p))

    _call("prctl", _SET_NO_NEW_PRIVS, 1, 0, 0, 0)  # else only root may
    _call("prctl", _SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(Filter(len(program) // 8, program)), 0, 0)


def open_in_memory(name: str) -> int:
    """Open a file that is in no directory, for reading and writing."""
    return _call("memfd_create", name.encode(), _MEMFD_CLOEXEC)


def open_process(pid: int) -> int:
    """Open a descriptor that can be read once the process has ended."""
    return _call("syscall", _PIDFD_OPEN, pid, 0)


# mounts


def mount(source: str, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    """Mount a file system, or with BIND a directory."""

    def text(value: str | None) -> bytes | None:
        return None if value is None else os.fsencode(value)

    try:
        _call("mount", text(source), text(target), text(kind), flags, text(options))
    except OSError as error:
        number = error.errno or 0
        raise OSError(number, f"mounting {kind or 'a directory'} at {target}: {os.strerror(number)}") from None


def mount_proc() -> None:
    """The /proc of the pid namespace that this process is in."""
    mount("proc", "/proc", "proc", _NOSUID | _NODEV | _NOEXEC)


def bind_read_only(source: str, target: str) -> None:
    """Show `source`, and what is mounted below it, at `target` too."""
    mount(source, target, None, BIND | RECURSIVE)
    flags = os.statvfs(target).f_flag
    mount("none", target, None, _REMOUNT | BIND | _RDONLY | sum(to for of, to in _LOCKED.items() if flags & of))


def keep_mounts_private() -> None:
    """Keep later mounts of this process in its mount namespace."""
    mount("none", "/", None, RECURSIVE | _PRIVATE)


def mount_points() -> Iterator[str]:
    """The directories at which something is mounted."""
    with open("/proc/self/mountinfo", "rb") as stream:
        for line in stream:
            raw = line.split()[4]
            yield os.fsdecode(raw.decode("unicode_escape").encode("latin-1") if b"\\" in raw else raw)


# namespaces


def unshare(flags: int) -> None:
    """Leave namespaces for new ones."""
    _call("unshare", flags)


def set_namespace(descriptor: int, flag: int) -> None:
    """Enter the namespace of the descriptor; a pid namespace holds for children only."""
    _call("setns", descriptor, flag)


def may_mount() -> bool:
    """Whether this process may do without a user namespace; unshares the mount namespace if so."""
    try:
        unshare(NEWNS)
        keep_mounts_private()
    except OSError:
        return False
    return True


def own_user_namespace(more: int = 0) -> None:
    """Enter one with the user's own ids, so that files and getuid() are as before. Needs a process with one thread."""
    user, group = os.geteuid(), os.getegid()
    unshare(NEWUSER | more)
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with open(f"/proc/self/{name}", "w") as stream:
            stream.write(text)


def loopback_up() -> None:
    """Bring up the loopback interface, which is down in a new network namespace."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        fcntl.ioctl(one, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _IFF_UP))


# capabilities


def capabilities() -> Capabilities:
    """The capabilities of this process."""
    with open("/proc/self/status") as stream:
        found = dict(line.split(":", 1) for line in stream if line.startswith("Cap"))
    effective, permitted, inheritable, bounding = (
        int(found[f"Cap{name}"], 16) for name in ("Eff", "Prm", "Inh", "Bnd")
    )
    return effective, permitted, inheritable, bounding


def restrict_capabilities(before: Capabilities) -> None:
    """Keep those of `before`, which a user namespace adds to, that don't reach the machine from within namespaces."""
    set_capabilities(tuple(each & ~_OF_THE_MACHINE for each in before))


def set_capabilities(wanted: Sequence[int]) -> None:
    """Have no capabilities but those of `wanted`, sets in the order of `Capabilities`."""
    effective, permitted, inheritable, bounding = wanted
    if not os.geteuid():  # only root gets the bounding set's capabilities by running a program
        with contextlib.suppress(OSError):  # beyond the last one that this kernel knows
            for number in range(64):
                if not bounding >> number & 1:
                    prctl(CAPBSET_DROP, number)
    header = struct.pack("=Ii", _CAPABILITY_VERSION_3, 0)
    sets = (effective, permitted, inheritable)
    data = struct.pack("=6I", *(value & 0xFFFFFFFF for value in sets), *(value >> 32 for value in sets))
    _call("capset", ctypes.c_char_p(header), ctypes.c_char_p(data))


def _call(name: str, *arguments: object) -> int:
    passed = (ctypes.c_ulong(each) if isinstance(each, int) else each for each in arguments)
    result = int(getattr(_libc, name)(*passed))
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return result
