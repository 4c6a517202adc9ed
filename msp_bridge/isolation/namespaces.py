"""A world of its own for every mutant, by Linux namespaces: without root's rights, with the standard library alone.

Theory of operation
-------------------
The problem: the tests of one mutant leave files, processes, ports and shared memory behind, and the next mutant's
verdict depends on them; tests by absolute path, editable installs and `.pth` files reach the user's own tree instead of
a copy. Undoing by hand never ends. The kernel can give every mutant the same beginning, if two processes prepare it:

host      `enter_host`, once, before anything of the project is imported. A private copy of the project is mounted at
          the project's *own path*, and what the copy leaves out (`.venv`, `node_modules`: `keep`) is mounted into it
          read-only. All paths mean what they mean to the user, and the user's tree can't be reached any more.
          In a user namespace the host goes on in a forked process (`process_namespace` says why).
child     `HostWorld.fork` and, in the child, `HostWorld.enter_child`, for each mutant. All of it is gone when it ends:
          overlay  writes into the tree (and into `keep`) go to a layer in memory (`layers`)
          tmp      the same for /tmp, /var/tmp, $TMPDIR and /dev/shm      home   the same for the home directory
          pid      whatever the mutant starts ends with it, even if detached (`process_namespace`); own /proc
          ipc      System V and POSIX queues      net   own loopback: every port is free, nothing outside is reachable
          limits   memory and file size of each process, number of processes, bytes written in all (`limits`)

Invariants, and why the obvious way fails:

* A user namespace is used only where it must be, so not for root: in one, files of other owners would turn into
  nobody's, and chown would fail in tests that pass outside. All ids but the user's own are unmapped (a known limit).
* The child has the capabilities that the host had before, no others: else permissions don't bite in tests. Root's child
  lacks those by which it would get out: it could unmount the copy, and write into the user's tree.
* A half-entered world can't be left. So `enter_host` first enters in throw-away processes, and learns which parts this
  machine refuses: Docker refuses unshare, Ubuntu's AppArmor the mounts after it, a masked /proc the part "pid".
* Parts that are permitted but that the project's tests don't pass in: the run without a mutant finds them.

What is to outlive a child goes through a descriptor that was opened before, or into a `share` directory. A command is
run in a world by `isolated_command`.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Mapping, Sequence

from . import descendants, kernel
from .layers import Descriptors, Layers, PartRefused, below, refused_as
from .limits import JobLimits
from .process_namespace import ProcessNamespace, continue_as_first

__all__ = ["PARTS", "HostWorld", "JobLimits", "PartRefused", "enter_host", "probe"]

PARTS = frozenset({"overlay", "tmp", "home", "pid", "ipc", "net"})

_FLAGS = {"ipc": kernel.NEWIPC, "net": kernel.NEWNET}
_TRIED_PROCESSES = 4096  # the limit in a trial: it shows whether a user namespace in the child is permitted


class HostWorld:
    """The namespaces that `enter_host` has entered.

    `parts` are those of PARTS that this machine permits for it; `refused` says why others (or which places) aren't.
    """

    def __init__(self, root: str, copy: str, layers: Layers, parts: frozenset[str] = PARTS) -> None:
        self.root, self.copy, self.layers, self.parts = root, copy, layers, parts
        self.refused: Mapping[str, str] = {}
        self.others: Mapping[str, str] = {}  # further directories, and the copy that stands for each
        self.covered = ""  # leads to what stood at `root` before the copy did; not in children
        self._covered = -1
        self._capabilities: kernel.Capabilities = (0, 0, 0, 0)
        self._namespaces: list[ProcessNamespace] = []  # not in children

    @property
    def processes(self) -> frozenset[int]:
        """Children of this process that belong to the world."""
        return frozenset(namespace.init for namespace in self._namespaces)

    def fork(self, parts: Collection[str]) -> tuple[int, ProcessNamespace | None]:
        """Fork a process that is to enter a child's world, in the host or in a fork of it. Raises OSError.

        The pid, which is 0 in the child, and the process namespace, if "pid" is among the `parts`. When it has been
        waited for, `end_child` gets both.
        """
        in_namespace = "pid" in self.parts & frozenset(parts)
        pid, namespace = self._fork_in_namespace(frozenset(parts)) if in_namespace else (os.fork(), None)
        if pid == 0:
            for each in self._namespaces:
                each.close()
            self._namespaces = []
        return pid, namespace

    def _fork_in_namespace(self, parts: frozenset[str]) -> tuple[int, ProcessNamespace]:
        """In one that is free, and has served for the same `parts`: it keeps the limits of these. Else in a new one."""
        for namespace in [each for each in self._namespaces if each.is_free and each.parts == parts]:
            try:
                return namespace.fork(), namespace
            except OSError:  # somebody has killed its first process
                self._end(namespace)
        self._namespaces.append(namespace := ProcessNamespace(parts))
        return namespace.fork(), namespace

    def enter_child(self, parts: Collection[str], limits: JobLimits | None = None) -> None:
        """Enter, in a process with a single thread that `fork` has made for these `parts`.

        The kernel kills it if its parent dies. Raises PartRefused: end the process then.
        """
        wanted = self.parts & frozenset(parts)
        limits = limits or JobLimits()
        where = os.getcwd()
        descendants.die_with_parent()
        os.close(self._covered)
        with refused_as("mount"):
            kernel.unshare(kernel.NEWNS)
        for part in sorted(wanted & _FLAGS.keys()):
            with refused_as(part):
                kernel.unshare(_FLAGS[part])
        self.layers.cover(wanted, limits.written)
        if "net" in wanted:
            with refused_as("net"):
                kernel.loopback_up()
        if "pid" in wanted:
            with refused_as("pid"):
                kernel.mount_proc()
            limits.set_for_namespace()
        if os.getpid() != os.getpgrp():
            os.setsid()  # os.kill(0, …) must not reach the host
        os.chdir(where)
        if self.layers.user_namespace and limits.processes is not None:
            kernel.own_user_namespace()
        kernel.restrict_capabilities(self._capabilities)
        limits.set_for_process()

    def end_child(self, child: int, namespace: ProcessNamespace | None) -> None:
        """End what a child that was waited for has left in its namespace, and erase what it wrote outside of memory.

        A later child gets the namespace.
        """
        if namespace is not None:
            namespace.clear()
            if not namespace.is_free:
                self._end(namespace)
        self.layers.forget(child)

    def keep_free(self, count: int) -> None:
        """End the process namespaces that no child has, but for so many."""
        for namespace in [each for each in self._namespaces if each.is_free][count:]:
            self._end(namespace)

    def end(self) -> None:
        """End the processes that belong to the world, and with them all children that have the part "pid"."""
        while self._namespaces:
            self._end(self._namespaces[-1])

    def _end(self, namespace: ProcessNamespace) -> None:
        namespace.end()
        self._namespaces.remove(namespace)

    def _become_host(self) -> None:
        """Raises PartRefused("mount")."""
        with refused_as("mount"):
            here = os.getcwd()
            where = self.root + here[len(self.copy) :] if below(here, self.copy) else here
            self._capabilities = kernel.capabilities()
            self.layers.user_namespace = not kernel.may_mount()
            if self.layers.user_namespace:
                kernel.own_user_namespace(kernel.NEWNS)
                kernel.keep_mounts_private()
                if "pid" in self.parts:
                    with refused_as("pid"):
                        kernel.unshare(kernel.NEWPID)
                        continue_as_first()
            with contextlib.ExitStack() as stack:
                opened = Descriptors(stack)
                copies = [(root, opened(copy)) for root, copy in self._copies]
                self._covered = os.open(self.root, os.O_PATH)
                self.covered = f"/proc/self/fd/{self._covered}"
                kept = [
                    (name, opened(os.path.join(self.root, name)))
                    for name in self.layers.keep
                    if self._mount_point(name)
                ]
                for root, copy in copies:
                    kernel.mount(copy, root, None, kernel.BIND)
                for name, source in kept:
                    kernel.bind_read_only(source, os.path.join(self.root, name))
            os.chdir(where)
            self.layers.keep = tuple(name for name, _ in kept)

    @property
    def _copies(self) -> list[tuple[str, str]]:
        """Each directory that a copy stands for, parents first, with the copy."""
        return sorted({self.root: self.copy, **self.others}.items())

    def _mount_point(self, name: str) -> bool:
        """Make the copy have something to mount `name` of the real tree on; False: there is nothing to mount."""
        real = os.path.join(self.root, name)
        root, copy = [(root, copy) for root, copy in self._copies if below(real, root)][-1]
        inside = copy + real[len(root) :]
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

    # which parts are permitted

    def _narrow(self) -> None:
        """Leave `parts` and places that work, as throw-away processes show.

        Raises PartRefused when there can be no host at all.
        """
        refused: dict[str, str] = {}
        # Usually all are. Where one is not, the overlay comes first: how tmp is made depends on it.
        for tried in () if self._trial(self.parts) is None else (frozenset({"overlay"}), PARTS):
            while (refusal := self._trial(self.parts & tried)) is not None:
                if self.layers.leave_out(refusal.place):
                    refused[refusal.place] = refusal.reason
                elif refusal.part == "memory" and self.layers.in_memory:
                    self.layers.in_memory = False
                elif refusal.part in self.parts:
                    refused[refusal.part] = refusal.reason
                    self.parts -= {refusal.part} | ({"home"} if refusal.part == "overlay" else set())
                    self.layers.overlays = "overlay" in self.parts
                else:
                    raise refusal
        self.parts -= {"tmp", "home"} - self.layers.parts
        self.refused = refused

    def _trial(self, parts: frozenset[str]) -> PartRefused | None:
        """Be host and child in throw-away processes; -> what was refused first."""
        reader, writer = os.pipe()
        pid = os.fork()
        if not pid:
            self._try(parts, writer)
        os.close(writer)
        with open(reader, encoding="utf-8", errors="surrogateescape") as stream:
            part, place, reason = (stream.read() or "mount\0\0the trial was killed").split("\0")[:3]
        os.waitpid(pid, 0)
        return PartRefused(part, place, reason) if part else None

    def _try(self, parts: frozenset[str], writer: int) -> None:
        """In the throw-away process, and in its child; neither returns."""
        answer = b""
        try:
            self._become_host()
            with refused_as("pid"):
                child, namespace = self.fork(parts)
            if child:
                os.waitpid(child, 0)
                self.end_child(child, namespace)
                self.end()
                answer = b""
            else:
                self.enter_child(parts, JobLimits(processes=_TRIED_PROCESSES))
                answer = b"\0\0"
        except PartRefused as refusal:
            answer = f"{refusal.part}\0{refusal.place}\0{refusal.reason}".encode(errors="surrogateescape")
        except BaseException as error:  # nothing may reach the stack below
            answer = f"mount\0\0{type(error).__name__}: {error}".encode(errors="surrogateescape")
        finally:
            os.write(writer, answer)
            os._exit(0)


def enter_host(
    root: str,
    copy: str,
    layers: str,
    keep: Sequence[str] = (),
    share: Sequence[str] = (),
    parts: Collection[str] = PARTS,
    tree: bool = True,
    others: Mapping[str, str] | None = None,
    outside: Sequence[str] = (),
) -> HostWorld:
    """Make `copy` stand at `root` for this process and those it starts.

    Call it with a single thread, before anything of the project is imported. It may return in a forked process, and
    the calling one then ends as that ends. The working directory stays the same path; from within `copy` it becomes its
    counterpart in `root`.

    Args:
        root: the project's own path.
        copy: a directory equal to the project, which the host writes into and no child does.
        layers: an empty directory outside of `root`, where children mount what they write.
        keep: paths relative to `root`, or absolute ones in `others`, that the copies leave out and that stay visible;
            a missing one is skipped.
        share: directories outside of `root` that stay the real ones in children, for results.
        parts: those of PARTS to try.
        tree: whether children get a layer over the tree, if "overlay" is permitted. Else they write into `copy`.
        others: further directories, outside of `root`, and for each the copy that stands for it.
        outside: directories that none of these is in or has as its own, over which children get a layer, too.

    Raises:
        PartRefused: with this process unchanged, where the machine permits no mounts.
    """
    if reason := kernel.why_not():
        raise PartRefused("mount", "", reason)
    root, copy, layers = (os.path.realpath(path) for path in (root, copy, layers))
    shared = tuple(os.path.realpath(path) for path in share)
    others = {os.path.realpath(other): os.path.realpath(of_other) for other, of_other in (others or {}).items()}
    for path in (layers, *shared):
        for covered in (root, *others):
            if below(path, covered):
                raise PartRefused("mount", path, f"{path} is in the project {covered}, which is covered")
    covering = Layers(root, layers, shared, tuple(sorted(keep)), tree, tuple(others), tuple(outside))
    world = HostWorld(root, copy, covering, PARTS & frozenset(parts))
    world.others = others
    world.layers.overlays = "overlay" in world.parts
    world._narrow()
    world._become_host()
    return world


def probe() -> tuple[frozenset[str], dict[str, str]]:
    """The parts that this machine permits, "mount" among them if any is, and why others aren't. Changes nothing."""
    if reason := kernel.why_not():
        return frozenset(), {"mount": reason}
    import tempfile  # here: each command that is isolated would wait for it, a tenth of its start

    with tempfile.TemporaryDirectory(prefix="msp-bridge-probe-") as base:
        root, copy, layers = (os.path.join(os.path.realpath(base), name) for name in ("root", "copy", "layers"))
        for path in (root, copy, layers):
            os.mkdir(path)
        world = HostWorld(root, copy, Layers(root, layers))
        try:
            world._narrow()
        except PartRefused as refusal:
            return frozenset(), {"mount": refusal.reason}
        return world.parts | {"mount"}, dict(world.refused)
