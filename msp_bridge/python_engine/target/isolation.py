"""A world of its own for every mutant, by Linux namespaces: without root's rights, with the standard library alone.

Theory of operation
-------------------
The problem: the tests of one mutant leave files, processes, ports and shared memory behind, and the next mutant's
verdict depends on them; tests by absolute path, editable installs and `.pth` files reach the user's own tree instead of
a copy. Undoing by hand never ends. The kernel can give every mutant the same beginning, if two processes prepare it:

host      `enter_host`, once, before anything of the project is imported. A private copy of the project is mounted at
          the project's *own path*, and what the copy leaves out (`.venv`, `node_modules`: `keep`) is mounted into it
          read-only. All paths mean what they mean to the user, and the user's tree can't be reached any more.
child     `World.enter_child`, in a forked child for each mutant. Everything below is gone when it ends:
          overlay  writes into the tree (and into `keep`) go to a layer in memory
          tmp      the same for /tmp, /var/tmp, $TMPDIR and /dev/shm      home   the same for the home directory
          pid      whatever the mutant starts ends with it, however it strayed (setsid, double fork); own /proc
          ipc      System V and POSIX queues      net   own loopback: every port is free, nothing outside is reachable
          limits   memory and file size of each process, number of processes, bytes written in all

A child with the part "pid" is forked into a process namespace (`process_namespace`), where a server forks many. Where
there is no server (a trial, a command), these processes make one, from the outside in:

    outer   the forked child itself. It only waits, and ends as the test process ended: same exit code, same signal. A
            signal sent to it (SIGTERM, SIGALRM, …) or its death ends all. When it has ended by itself or by a signal
            other than SIGKILL, all others are gone; its copies of the host's descriptors close then, not before.
    init    number 1 of the pid namespace. It reaps orphans and reports how the test process ended. It stands between
            because the kernel spares number 1 from signals without a handler: SIGALRM, pytest-timeout and
            os.kill(os.getpid(), …) would do nothing in it. When it ends, the kernel kills all that is left.
    inner   `enter_child` returns here, in a session of its own (os.kill(0, …) must not reach the host).

Invariants, and why the obvious way fails:

* Everything is mounted by file descriptors (`/proc/self/fd/N`) that were opened before anything is covered: the project
  may lie below /tmp or the home directory, the copy below either, and the interpreter in the project.
* The overlays are mounted parents first; mounts of others below a covered place are bound back, as they were.
* A user namespace is used only where it must be, so not for root: in one, files of other owners would turn into
  nobody's, and chown would fail in tests that pass outside. All ids but the user's own are unmapped (a known limit).
* The inner process has the capabilities that the host had before, no others: else permissions don't bite in tests.
* RLIMIT_NPROC counts in the user namespace, so the inner process gets one of its own: no mutant's fork bomb is
  another's EAGAIN. The kernel spares root from it; from Linux 6.14 the pid namespace's own pid_max stands for it.
* A half-entered world can't be left. So `enter_host` first enters in throw-away children, and learns which parts this
  machine refuses: Docker refuses unshare, Ubuntu's AppArmor the mounts after it, a masked /proc the part "pid".
* Parts that are permitted but that the project's tests don't pass in: the run without a mutant finds them.

Known limits: renaming a directory that the tree had gives EXDEV in a user namespace; unix sockets of the real /tmp stay
reachable; bytes written count as memory. What is to outlive a child goes through a descriptor that was opened before,
or into a `share` directory. As a program: `python isolation.py --root R --copy C --layers L -- COMMAND…`.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import os
import shutil
import signal
import socket
import stat
import struct
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

if (
    sys.platform != "win32"
):  # here, not where they are used: importing them in every child would cost more than all else
    import fcntl
    import resource
try:
    import ctypes

    _libc: Any = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
except ImportError:  # an interpreter that was built without libffi
    _libc = None

PARTS = frozenset({"overlay", "tmp", "home", "pid", "ipc", "net"})

_NEWNS, _NEWIPC, _NEWUSER, _NEWPID, _NEWNET = 0x20000, 0x8000000, 0x10000000, 0x20000000, 0x40000000
_RDONLY, _REMOUNT, _BIND, _REC, _PRIVATE = 1, 32, 4096, 16384, 1 << 18
_LOCKED = {
    2: 2,
    4: 4,
    8: 8,
    1024: 1024,
    2048: 2048,
    4096: 1 << 21,
}  # statvfs's flags -> mount's, which a remount must repeat
_PR_SET_PDEATHSIG, _PR_CAPBSET_DROP = 1, 24
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1
_ENDING = ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGALRM", "SIGUSR1", "SIGUSR2", "SIGXCPU", "SIGVTALRM", "SIGPROF")


class PartRefused(OSError):
    """The kernel refused a part; "mount" is the host's own. `place`: the directory, if it is about one."""

    def __init__(self, part: str, place: str, reason: str) -> None:
        super().__init__(errno.EPERM, reason)
        self.part, self.place, self.reason = part, place, reason

    def __str__(self) -> str:
        return self.reason


@dataclass(frozen=True)
class Limits:
    """What one mutant may use. None: no limit of ours."""

    memory: int | None = None  # bytes of address space, of each process
    processes: int | None = None  # at a time, all of its processes and threads together
    file_size: int | None = None  # bytes, of each file
    written: int | None = None  # bytes written into tree, tmp and home in all; None: half of the machine's memory


@dataclass
class World:
    """What `enter_host` has entered.

    `parts` are those of PARTS that this machine permits for it; `refused` says why others (or which places) aren't.
    """

    root: str
    copy: str
    layers: str
    keep: tuple[str, ...] = ()
    share: tuple[str, ...] = ()
    parts: frozenset[str] = PARTS
    refused: Mapping[str, str] = field(default_factory=dict)
    _places: list[tuple[str, str]] = field(default_factory=list)  # (directory, part), parents first
    _foreign: list[str] = field(default_factory=list)  # others' mounts below the places
    _capabilities: tuple[int, int, int, int] = (0, 0, 0, 0)  # effective, permitted, inheritable, bounding
    _user_namespace: bool = False
    _in_memory: bool = True  # layers are a tmpfs; for overlays in a user namespace that needs Linux 6.6

    def enter_child(
        self, parts: Collection[str] | None = None, limits: Limits | None = None, *, separated: bool = False
    ) -> None:
        """Enter in a just forked, single-threaded child of the host. Returns in the process that is to run the tests.

        That is the calling process, which the kernel then kills if its parent dies, unless the part "pid" is wanted and
        the process was not forked into a `ProcessNamespace` (`separated`).
        `parts`: fewer than `self.parts`; the run without a mutant decides. Raises PartRefused: end the process then.
        """
        wanted = self.parts if parts is None else self.parts & frozenset(parts)
        limits = limits or Limits()
        where = os.getcwd()
        flags = {"ipc": _NEWIPC, "net": _NEWNET, **({} if separated else {"pid": _NEWPID})}
        _call("prctl", _PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        with _refused_as("mount"):
            _call("unshare", _NEWNS)
        for part in sorted(wanted & set(flags)):
            with _refused_as(part):
                _call("unshare", flags[part])
        self._cover(wanted, limits)
        if "net" in wanted:
            with _refused_as("net"):
                _loopback_up()
        if "pid" in wanted and not separated:
            _become_inner(limits)
        elif "pid" in wanted:
            with _refused_as("pid"):
                _mount_proc()
            _limit_processes(limits)
        elif os.getpid() != os.getpgrp():
            os.setsid()
        os.chdir(where)
        self._restrict(limits)

    # the host

    def _become_host(self) -> None:
        """Raises PartRefused("mount")."""
        with _refused_as("mount"):
            where = _translated(os.getcwd(), self.copy, self.root)
            self._capabilities = _capabilities()
            self._user_namespace = not _may_mount()
            if self._user_namespace:
                _own_user_namespace(_NEWNS)
            _mount("none", "/", None, _REC | _PRIVATE)
            with contextlib.ExitStack() as stack:
                opened = _Descriptors(stack)
                copy = opened(self.copy)
                kept = [(name, opened(os.path.join(self.root, name))) for name in self.keep if self._mount_point(name)]
                _mount(copy, self.root, None, _BIND)
                for name, source in kept:
                    _bind_read_only(source, os.path.join(self.root, name))
            os.chdir(where)
            self.keep = tuple(name for name, _ in kept)

    def _mount_point(self, name: str) -> bool:
        """Make the copy have something to mount `name` of the real tree on; False: there is nothing to mount."""
        real, inside = os.path.join(self.root, name), os.path.join(self.copy, name)
        if os.path.islink(real):
            if not os.path.lexists(inside):
                os.makedirs(os.path.dirname(inside), exist_ok=True)
                os.symlink(os.readlink(real), inside)
            return False
        if os.path.isdir(real):
            os.makedirs(inside, exist_ok=True)
        elif os.path.exists(real):
            os.makedirs(os.path.dirname(inside), exist_ok=True)
            os.close(os.open(inside, os.O_CREAT | os.O_WRONLY))
        else:
            return False
        return True

    def _survey(self) -> None:
        """Which directories a child covers beside the tree, and what others have mounted below them."""
        tmp = [os.environ.get("TMPDIR", ""), "/tmp", "/var/tmp", "/dev/shm"]  # noqa: S108
        candidates = [*(("tmp", path) for path in tmp if path), ("home", os.path.expanduser("~"))]
        places: dict[str, str] = {}
        for part, path in candidates:
            real = os.path.realpath(path)
            if (
                os.path.isdir(real)
                and os.access(real, os.W_OK | os.X_OK)
                and real != "/"
                and not _below(real, self.root)
            ):
                places.setdefault(real, part)
        mounts = sorted(set(_mount_points()))
        within = [p for p in places if any(p != q and _below(p, q) for q in places) and p not in mounts]
        self._places = sorted((path, part) for path, part in places.items() if path not in within)
        covered = [path for path, _ in self._places]
        foreign = [
            m for m in mounts if m not in covered and any(_below(m, p) for p in covered) and not _below(m, self.root)
        ]
        self._foreign = [m for m in foreign if not any(m != other and _below(m, other) for other in foreign)]

    # the child

    def _cover(self, wanted: frozenset[str], limits: Limits) -> None:
        layered = "overlay" in self.parts
        places = [(path, part) for path, part in self._places if part in wanted]
        if not layered:
            places = [(path, part) for path, part in places if part == "tmp" and not self._needed(path)]
        if "overlay" in wanted:
            places += [(self.root, "overlay"), *((os.path.join(self.root, name), "overlay") for name in self.keep)]
        if not places:
            return
        with contextlib.ExitStack() as stack:
            opened = _Descriptors(stack)
            lower = [opened(path) for path, _ in places]
            back = []
            for path in (*self._foreign, *self.share):
                over = next((place for place, _ in places if _below(path, place)), "")
                with _refused_as("overlay", over):
                    if over:
                        back.append((path, opened(path)))
            store = opened(self._store(limits))
            for number, (path, part) in enumerate(places):
                with _refused_as(part, path):
                    if layered:
                        self._overlay(path, lower[number], f"{store}/{number}")
                    else:
                        os.mkdir(f"{store}/{number}")
                        os.chmod(f"{store}/{number}", stat.S_IMODE(os.stat(path).st_mode))
                        _mount(f"{store}/{number}", path, None, _BIND)
            for path, source in back:
                with _refused_as("overlay", path):
                    _mount(source, path, None, _BIND | _REC)

    def _store(self, limits: Limits) -> str:
        """A directory for all layers of one child."""
        if not self._in_memory:
            path = os.path.join(self.layers, os.readlink("/proc/self"))  # the pid as the host knows it
            os.mkdir(path, 0o700)
            return path
        with _refused_as("memory"):
            _mount("tmpfs", self.layers, "tmpfs", 0, "mode=700" + (f",size={limits.written}" if limits.written else ""))
            if self._user_namespace:
                os.setxattr(self.layers, "user.overlay.msp-bridge", b"")
        return self.layers

    def _overlay(self, path: str, lower: str, layer: str) -> None:
        """What is written goes to directories beginning with `layer`; the place's own mode and times stay."""
        own = os.stat(lower)
        upper, work = layer + "u", layer + "w"
        os.mkdir(upper)
        os.mkdir(work)
        options = f"lowerdir={lower},upperdir={upper},workdir={work},"
        if self._user_namespace:
            options += "userxattr"
        else:
            options += "redirect_dir=on"
            os.chown(upper, own.st_uid, own.st_gid)
        os.chmod(upper, stat.S_IMODE(own.st_mode))
        os.utime(upper, ns=(own.st_atime_ns, own.st_mtime_ns))
        _mount("overlay", path, "overlay", 0, options)

    def _needed(self, place: str) -> bool:
        """Whether an empty directory in its stead would hide what the tests run from."""
        return any(
            _below(path, place)
            for path in (self.root, sys.prefix, sys.base_prefix, *self._foreign, *self.share, *sys.path)
        )

    def _restrict(self, limits: Limits) -> None:
        def lower(which: int, value: int | None) -> None:
            if value is not None:
                _, hard = resource.getrlimit(which)
                value = value if hard == resource.RLIM_INFINITY else min(value, hard)
                resource.setrlimit(which, (value, value))

        if self._user_namespace and limits.processes is not None:
            _own_user_namespace()
        if self._user_namespace:
            _restore_capabilities(self._capabilities)
        lower(resource.RLIMIT_NPROC, limits.processes)
        lower(resource.RLIMIT_FSIZE, limits.file_size)
        lower(resource.RLIMIT_AS, limits.memory)

    # which parts are permitted

    def _try(self) -> None:
        """Narrow `parts` and places to what works, in throw-away children.

        Raises PartRefused when there can be no host at all.
        """
        refused: dict[str, str] = {}
        for tried in (frozenset({"overlay"}), PARTS):  # the overlay first: how tmp is made depends on it
            while (refusal := self._trial(tried)) is not None:
                places = dict(self._places)
                if refusal.place in places:
                    refused[refusal.place] = refusal.reason
                    del places[refusal.place]
                    self._places = sorted(places.items())
                    self._foreign = [m for m in self._foreign if any(_below(m, path) for path in places)]
                elif refusal.part == "memory" and self._in_memory:
                    self._in_memory = False
                elif refusal.part in self.parts:
                    refused[refusal.part] = refusal.reason
                    self.parts -= {refusal.part} | ({"home"} if refusal.part == "overlay" else set())
                else:
                    raise refusal
        self.parts -= {"tmp", "home"} - {part for _, part in self._places}
        self.refused = refused

    def _trial(self, parts: frozenset[str]) -> PartRefused | None:
        """Be host and child in a throw-away process; -> what was refused first."""
        reader, writer = os.pipe()
        pid = os.fork()
        if not pid:
            answer = "\0\0"
            try:
                self._become_host()
                self.enter_child(parts, Limits(processes=4096))
            except PartRefused as refusal:
                answer = f"{refusal.part}\0{refusal.place}\0{refusal.reason}"
            except BaseException as error:  # nothing may reach the stack below
                answer = f"mount\0\0{type(error).__name__}: {error}"
            finally:
                os.write(writer, answer.encode(errors="surrogateescape"))
                os._exit(0)
        os.close(writer)
        with open(reader, encoding="utf-8", errors="surrogateescape") as stream:
            part, place, reason = (stream.read() or "mount\0\0the trial was killed").split("\0")
        os.waitpid(pid, 0)
        self.forget(pid)
        return PartRefused(part, place, reason) if part else None

    def forget(self, child: int) -> None:
        """Erase what a child that was waited for has written, where it isn't in memory."""
        if not self._in_memory:
            shutil.rmtree(os.path.join(self.layers, str(child)), ignore_errors=True)


def enter_host(
    root: str,
    copy: str,
    layers: str,
    keep: Sequence[str] = (),
    share: Sequence[str] = (),
    parts: Collection[str] = PARTS,
) -> World:
    """Make `copy` stand at `root` for this process and those it starts.

    Call it with a single thread, before anything of the project is imported. The working directory stays the same path;
    from within `copy` it becomes its counterpart in `root`.

    Args:
        root: the project's own path.
        copy: a directory equal to the project, which the host writes into and no child does.
        layers: an empty directory outside of `root`, where children mount what they write.
        keep: paths relative to `root` that the copy leaves out and that stay visible; a missing one is skipped.
        share: directories outside of `root` that stay the real ones in children, for results.
        parts: those of PARTS to try.

    Raises:
        PartRefused: with this process unchanged, where the machine permits no mounts.
    """
    if reason := _impossible():
        raise PartRefused("mount", "", reason)
    root, copy, layers = (os.path.realpath(path) for path in (root, copy, layers))
    world = World(
        root, copy, layers, tuple(sorted(keep)), tuple(os.path.realpath(path) for path in share), PARTS & set(parts)
    )
    for path in (layers, *world.share):
        if _below(path, root):
            raise PartRefused("mount", path, f"{path} is in the project {root}, which is covered")
    world._survey()
    world._try()
    world._become_host()
    return world


def probe() -> tuple[frozenset[str], dict[str, str]]:
    """The parts that this machine permits, "mount" among them if any is, and why others aren't. Changes nothing."""
    if reason := _impossible():
        return frozenset(), {"mount": reason}
    with tempfile.TemporaryDirectory(prefix="msp-bridge-probe-") as base:
        root, copy, layers = (os.path.join(os.path.realpath(base), name) for name in ("root", "copy", "layers"))
        for path in (root, copy, layers):
            os.mkdir(path)
        world = World(root, copy, layers)
        world._survey()
        try:
            world._try()
        except PartRefused as refusal:
            return frozenset(), {"mount": refusal.reason}
        return world.parts | {"mount"}, dict(world.refused)


def _impossible() -> str:
    if sys.platform != "linux":
        return f"namespaces are a feature of Linux, not of {sys.platform}"
    return "" if _libc else "this Python has no ctypes"


# processes of a child


def _become_inner(limits: Limits) -> None:
    """Fork init and inner; returns in inner. Raises PartRefused("pid") there when /proc can't be mounted."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, set(signal.Signals))
    reader, writer = os.pipe()
    init = os.fork()
    if init:
        os.close(writer)
        _wait_outside(init, reader)
    os.close(reader)
    refusal: OSError | None = None
    try:
        _call("prctl", _PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        _mount_proc()
        _limit_processes(limits)
    except OSError as error:
        refusal = error
    inner = os.fork()
    if inner:
        _reap(inner, writer)
    os.close(writer)
    os.setsid()
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    if refusal is not None:
        raise PartRefused("pid", "", f"mounting /proc: {refusal.strerror}")


def _mount_proc() -> None:
    """The one of the process namespace that this process is in."""
    _mount("proc", "/proc", "proc", 2 | 4 | 8)


def _wait_outside(init: int, reader: int) -> NoReturn:
    """The outer process: end everything on a signal, and end as the inner one ended."""
    received: list[int] = []

    def end(number: int, _frame: object) -> None:
        received.append(number)
        os.kill(init, signal.SIGKILL)

    _default_signals()
    for name in _ENDING:
        signal.signal(getattr(signal, name), end)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.waitpid(init, 0)  # returns when every process of the namespace is gone
    ended = os.read(reader, 4)
    code = os.waitstatus_to_exitcode(struct.unpack("i", ended)[0]) if len(ended) == 4 else -signal.SIGKILL
    code = -received[0] if received else code
    if code < 0:
        _no_core()
        signal.pthread_sigmask(signal.SIG_BLOCK, set(signal.Signals))
        if -code not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os._exit(code if code >= 0 else 128 - code)


def _reap(inner: int, writer: int) -> NoReturn:
    """The init: reap whatever ends, until the inner process does."""
    _default_signals()
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == inner:
            os.write(writer, struct.pack("i", status))
            os._exit(0)


def _default_signals() -> None:
    """Forget the handlers of the program that this process was forked from; none of its code may run here."""
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        if number not in (signal.SIGKILL, signal.SIGSTOP) and signal.getsignal(number) != signal.SIG_DFL:
            signal.signal(number, signal.SIG_DFL)


def _no_core() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


def _limit_processes(limits: Limits) -> None:
    """For root, whom RLIMIT_NPROC spares. Before Linux 6.14 this is the whole machine's: then leave it alone."""
    if limits.processes is None:
        return
    version = tuple(int(part) for part in os.uname().release.split(".")[:2] if part.isdigit())
    if version >= (6, 14):
        with contextlib.suppress(OSError), open("/proc/sys/kernel/pid_max", "w") as stream:
            stream.write(str(limits.processes + 300))  # after the last number they begin again at 300


# the kernel


def _call(name: str, *arguments: object) -> int:
    passed = (ctypes.c_ulong(each) if isinstance(each, int) else each for each in arguments)
    result = int(getattr(_libc, name)(*passed))
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return result


def _mount(source: str, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    def text(value: str | None) -> bytes | None:
        return None if value is None else os.fsencode(value)

    try:
        _call("mount", text(source), text(target), text(kind), flags, text(options))
    except OSError as error:
        number = error.errno or 0
        raise OSError(number, f"mounting {kind or 'a directory'} at {target}: {os.strerror(number)}") from None


def _bind_read_only(source: str, target: str) -> None:
    _mount(source, target, None, _BIND | _REC)
    flags = os.statvfs(target).f_flag
    _mount("none", target, None, _REMOUNT | _BIND | _RDONLY | sum(to for of, to in _LOCKED.items() if flags & of))


def _may_mount() -> bool:
    """Whether this process may do without a user namespace; unshares the mount namespace if so."""
    try:
        _call("unshare", _NEWNS)
        _mount("none", "/", None, _REC | _PRIVATE)
    except OSError:
        return False
    return True


def _own_user_namespace(more: int = 0) -> None:
    """With the user's own ids, so that files and getuid() are as before. Needs a process with one thread."""
    user, group = os.geteuid(), os.getegid()
    _call("unshare", _NEWUSER | more)
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with open(f"/proc/self/{name}", "w") as stream:
            stream.write(text)


def _capabilities() -> tuple[int, int, int, int]:
    with open("/proc/self/status") as stream:
        found = dict(line.split(":", 1) for line in stream if line.startswith("Cap"))
    effective, permitted, inheritable, bounding = (
        int(found[f"Cap{name}"], 16) for name in ("Eff", "Prm", "Inh", "Bnd")
    )
    return effective, permitted, inheritable, bounding


def _restore_capabilities(before: tuple[int, int, int, int]) -> None:
    effective, permitted, inheritable, bounding = before
    if not os.geteuid():  # only root gets the bounding set's capabilities by running a program
        for number in range(64):
            if not bounding >> number & 1:
                with contextlib.suppress(OSError):  # beyond the last one that this kernel knows
                    _call("prctl", _PR_CAPBSET_DROP, number, 0, 0, 0)
    header = struct.pack("=Ii", 0x20080522, 0)
    sets = (effective, permitted, inheritable)
    data = struct.pack("=6I", *(value & 0xFFFFFFFF for value in sets), *(value >> 32 for value in sets))
    _call("capset", ctypes.c_char_p(header), ctypes.c_char_p(data))


def _loopback_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        fcntl.ioctl(one, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _IFF_UP))


# paths


class _Descriptors:
    """Opens paths so that they stay reachable, as `/proc/self/fd/N`, when something is mounted over them."""

    def __init__(self, stack: contextlib.ExitStack) -> None:
        self._stack = stack

    def __call__(self, path: str) -> str:
        number = os.open(path, os.O_PATH)
        self._stack.callback(os.close, number)
        return f"/proc/self/fd/{number}"


@contextlib.contextmanager
def _refused_as(part: str, place: str = "") -> Iterator[None]:
    try:
        yield
    except PartRefused:
        raise
    except OSError as error:
        raise PartRefused(part, place, error.strerror or str(error)) from None


def _below(path: str, directory: str) -> bool:
    return path == directory or path.startswith(directory.rstrip("/") + "/")


def _translated(path: str, old: str, new: str) -> str:
    return new + path[len(old) :] if _below(path, old) else path


def _mount_points() -> Iterator[str]:
    with open("/proc/self/mountinfo", "rb") as stream:
        for line in stream:
            raw = line.split()[4]
            yield os.fsdecode(raw.decode("unicode_escape").encode("latin-1") if b"\\" in raw else raw)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command in a world; ends as the command ended, 125 where a world is refused."""
    parser = argparse.ArgumentParser(prog="isolation.py", description="Run a command in a world of its own.")
    parser.add_argument("--root", required=True, help="the project's own path")
    parser.add_argument("--copy", required=True, help="what stands there instead")
    parser.add_argument("--layers", required=True, help="an empty directory outside of the project")
    parser.add_argument("--keep", action="append", default=[], help="path in the project that the copy leaves out")
    parser.add_argument("--share", action="append", default=[], help="directory whose files outlive the command")
    parser.add_argument("--parts", default=",".join(sorted(PARTS)), help="default: %(default)s, as far as permitted")
    for name in ("memory", "processes", "file-size", "written"):
        parser.add_argument(f"--{name}", type=int, help="a limit")
    parser.add_argument("command", nargs="+")
    given = parser.parse_args(arguments)
    limits = Limits(given.memory, given.processes, given.file_size, given.written)
    try:
        world = enter_host(given.root, given.copy, given.layers, given.keep, given.share, set(given.parts.split(",")))
        world.enter_child(limits=limits)
    except OSError as refusal:
        print(f"no world of its own: {refusal}", file=sys.stderr)  # noqa: T201
        os._exit(125)
    for name in ("SIGPIPE", "SIGXFSZ"):  # which Python ignores, and the command would inherit that
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    try:
        os.execvp(given.command[0], given.command)
    except OSError as error:
        print(f"{given.command[0]}: {error.strerror}", file=sys.stderr)  # noqa: T201
        os._exit(127 if isinstance(error, FileNotFoundError) else 126)


if __name__ == "__main__":
    main()
