"""Layers: where the writes of a child go, so that nothing of them is left when it ends.

Theory of operation
-------------------
Over each directory that a child may write into (the tree, what of it is kept from the copies, temporary directories,
the home directory, others that the host names) an overlay is mounted: it shows what is there, and what is written goes
to a directory of the child's own, its *layer*. All layers of a child lie in one tmpfs, which is gone when the child's
mount namespace is.

Invariants, and why the obvious way fails:

* Everything is mounted by file descriptors (`/proc/self/fd/N`) that were opened before anything is covered: the project
  may lie below /tmp or the home directory, the copy below either, and the interpreter in the project.
* The overlays are mounted parents first; mounts of others below a covered place are bound back, as they were, and so
  are the copies, unless the tree is covered, too.
* Where a tmpfs can't carry overlays (in a user namespace, before Linux 6.6) the layers are files on the disk, and
  somebody who has waited for the child erases them: `Layers.forget`.
* Where the kernel refuses overlays altogether, temporary directories are covered by empty ones, unless that would hide
  what the tests run from.

Known limits: renaming a directory that the tree had gives EXDEV in a user namespace; unix sockets of the real /tmp stay
reachable; bytes written count as memory.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
from collections.abc import Iterator

from . import kernel

TMP = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108


class PartRefused(OSError):
    """The kernel refused a part; "mount" is the host's own. `place`: the directory, if it is about one."""

    def __init__(self, part: str, place: str, reason: str) -> None:
        super().__init__(errno.EPERM, reason)
        self.part, self.place, self.reason = part, place, reason

    def __str__(self) -> str:
        return self.reason


@contextlib.contextmanager
def refused_as(part: str, place: str = "") -> Iterator[None]:
    """An OSError in the block is a PartRefused."""
    try:
        yield
    except PartRefused:
        raise
    except OSError as error:
        raise PartRefused(part, place, error.strerror or str(error)) from None


class Layers:
    """Which directories the children of one host cover, and how."""

    def __init__(
        self,
        root: str,
        directory: str,  # empty, outside of the project: children mount what they write there
        share: tuple[str, ...] = (),  # directories outside of `root` that stay the real ones
        keep: tuple[str, ...] = (),  # paths in `root`, or absolute ones in `others`, that the copy has not
        tree: bool = True,  # covered too; else what is written there goes to the copy, also after the child's end
        others: tuple[str, ...] = (),  # further directories that copies stand for
        outside: tuple[str, ...] = (),  # directories outside of these that are covered with the tree
    ) -> None:
        self.root, self.directory, self.share, self.keep, self.tree = root, directory, share, keep, tree
        self.others, self.outside = others, outside
        self.overlays = True  # the kernel permits them
        self.in_memory = True
        self.user_namespace = False
        self._find_places()

    def _find_places(self) -> None:
        """Look which directories there are to cover beside the tree, and what others have mounted below them."""
        tmp = [os.environ.get("TMPDIR", ""), *TMP]
        candidates = [*(("tmp", path) for path in tmp if path), ("home", os.path.expanduser("~"))]
        candidates += (("overlay", path) for path in self.outside)
        places: dict[str, str] = {}
        for part, path in candidates:
            real = os.path.realpath(path)
            writable = os.path.isdir(real) and os.access(real, os.W_OK | os.X_OK)
            if writable and real != "/" and not any(below(real, root) for root in self._roots):
                places.setdefault(real, part)
        mounts = sorted(set(kernel.mount_points()))
        within = [
            p
            for p in places
            if p not in mounts and any(p != q and below(p, q) and _goes_with(places[p], places[q]) for q in places)
        ]
        # (directory, part), parents first
        self._places = sorted((path, part) for path, part in places.items() if path not in within)
        covered = [path for path, _ in self._places]
        foreign = [
            m
            for m in mounts
            if m not in covered
            and any(below(m, p) for p in covered)
            and not any(below(m, root) for root in self._roots)
        ]
        # others' mounts below the places
        self._foreign = [m for m in foreign if not any(m != other and below(m, other) for other in foreign)]

    @property
    def _roots(self) -> tuple[str, ...]:
        return (self.root, *self.others)

    @property
    def parts(self) -> set[str]:
        """The parts for which there is a directory."""
        return {part for _, part in self._places}

    def leave_out(self, place: str) -> bool:
        """Stop covering the directory. Returns False if it was none of the places."""
        places = dict(self._places)
        if places.pop(place, None) is None:
            return False
        self._places = sorted(places.items())
        self._foreign = [m for m in self._foreign if any(below(m, path) for path in places)]
        return True

    def cover(self, parts: frozenset[str], written: int | None) -> None:
        """In a child with a mount namespace of its own: `written` bytes may go to the layers. Raises PartRefused."""
        places = [(path, part) for path, part in self._places if part in parts]
        if not self.overlays:
            places = [(path, part) for path, part in places if part == "tmp" and not self._needed(path)]
        if "overlay" in parts:
            inside = (*sorted(self._roots), *(os.path.join(self.root, name) for name in self.keep))
            places += [(path, "overlay") for path in inside]
        if not places:
            return
        with contextlib.ExitStack() as stack:
            opened = Descriptors(stack)
            lower = [opened(path) for path, _ in places]
            back = []
            for path in (*self._foreign, *self.share):
                over = next((place for place, _ in places if below(path, place)), "")
                with refused_as("overlay", over):
                    if over:
                        back.append((path, opened(path)))
            store = opened(self._store(written))
            for number, (path, part) in enumerate(places):
                with refused_as(part, path):
                    self._lay(path, lower[number], f"{store}/{number}")
            for path, source in back:
                with refused_as("overlay", path):
                    kernel.mount(source, path, None, kernel.BIND | kernel.RECURSIVE)

    def forget(self, child: int) -> None:
        """Erase what a child that was waited for has written, where it isn't in memory."""
        if not self.in_memory:
            import shutil  # here: where layers are in memory no command waits for it

            shutil.rmtree(os.path.join(self.directory, str(child)), ignore_errors=True)

    def _store(self, written: int | None) -> str:
        """A directory for all layers of one child."""
        if not self.in_memory:
            path = os.path.join(self.directory, os.readlink("/proc/self"))  # the pid as the host knows it
            os.mkdir(path, 0o700)
            return path
        with refused_as("memory"):
            options = "mode=700" + (f",size={written}" if written else "")
            kernel.mount("tmpfs", self.directory, "tmpfs", 0, options)
            if self.user_namespace:
                os.setxattr(self.directory, "user.overlay.msp-bridge", b"")
        return self.directory

    def _lay(self, path: str, lower: str, layer: str) -> None:
        """Cover one place. What is written goes to directories whose names begin with `layer`."""
        if path in self._roots and not self.tree:  # the copy again, should a temporary directory have covered it
            kernel.mount(lower, path, None, kernel.BIND | kernel.RECURSIVE)
            return
        own = os.stat(lower)
        if not self.overlays:
            os.mkdir(layer)
            os.chmod(layer, stat.S_IMODE(own.st_mode))
            kernel.mount(layer, path, None, kernel.BIND)
            return
        upper, work = layer + "u", layer + "w"
        os.mkdir(upper)
        os.mkdir(work)
        options = f"lowerdir={lower},upperdir={upper},workdir={work},"
        if self.user_namespace:
            options += "userxattr"
        else:
            options += "redirect_dir=on"
            os.chown(upper, own.st_uid, own.st_gid)
        os.chmod(upper, stat.S_IMODE(own.st_mode))  # the place's own mode and times stay
        os.utime(upper, ns=(own.st_atime_ns, own.st_mtime_ns))
        kernel.mount("overlay", path, "overlay", 0, options)

    def _needed(self, place: str) -> bool:
        """Whether an empty directory in its stead would hide what the tests run from."""
        needed = (*self._roots, sys.prefix, sys.base_prefix, *self._foreign, *self.share, *sys.path)
        return any(below(path, place) for path in needed)


def _goes_with(part: str, other: str) -> bool:
    """Whether a place of `part` needs no layer of its own below one of `other`: that is always there, too."""
    return (part == "overlay") == (other == "overlay")


class Descriptors:
    """Opens paths so that they stay reachable, as `/proc/self/fd/N`, when something is mounted over them."""

    def __init__(self, stack: contextlib.ExitStack) -> None:
        self._stack = stack

    def __call__(self, path: str) -> str:
        """The path by which it stays reachable. Raises OSError."""
        number = os.open(path, os.O_PATH)
        self._stack.callback(os.close, number)
        return f"/proc/self/fd/{number}"


def below(path: str, directory: str) -> bool:
    """Whether a path is a directory, or in it."""
    return path == directory or path.startswith(directory.rstrip("/") + "/")
