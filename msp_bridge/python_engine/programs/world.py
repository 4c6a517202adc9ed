"""The world of a job: what it shares with others, and how it gets the mutated file.

Where the kernel permits it (`isolation`), the sandbox stands at the project's own path, and each job has the tree, the
temporary directories, the home directory, processes, queues and network ports for itself. Elsewhere a job either has a
guard (`isolation.guard`), and ends at its first lasting effect, or it runs while no other does, and `Journal` undoes
what it has written: `JobQueue`.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from itertools import count
from pathlib import Path

from ...isolation import guard, kernel, namespaces
from ...isolation.left_out import CACHES, GENERATED
from ...isolation.limits import JobLimits, generous_limits
from ...isolation.process_namespace import ProcessNamespace
from .bytecode import MUTATED, write_none
from .file_edit import FileEdit, PythonText
from .journal import Journal
from .mutant_in_memory import MutantInMemory

TIME_OF_MUTANTS = 1 << 29  # s since the epoch, in the 1980s: no file of a project is that old
PORTABLE = frozenset({"home"})  # what a job has for itself without the kernel's help, beside its TMPDIR
LIMITS = "limits"  # a part of a world, beside those of `isolation`: bounds of what a job may use
GUARD = "guard"  # likewise; a job without it runs while no other does
SCRATCH = "m-"  # begins the names of the directories of jobs, in the host's temporary directory
NUMBERS = count()  # of jobs of this process
NEVER_KEPT = CACHES | GENERATED


class World:
    """`place` is the directory in which the tests run; `parts` are what each job has for itself."""

    def __init__(
        self, root: str, sandbox: str, layers: Path, *, wanted: Collection[str] | None, temporary: str
    ) -> None:
        """Enter it: this process and its children see the sandbox at `root`, if that is possible.

        `wanted` are the parts to try; None: all. `temporary`: a directory for temporary files that nobody else uses.
        """
        self.root = root  # the user's tree
        self._isolated: namespaces.HostWorld | None = None
        self._journals: list[Journal] = []
        self._temporary = temporary
        self.place = sandbox
        shutil.rmtree(layers, ignore_errors=True)  # of an earlier host
        layers.mkdir(exist_ok=True)
        self._layers = layers
        wanted = namespaces.PARTS | {LIMITS, GUARD} if wanted is None else frozenset(wanted)
        if wanted - {GUARD}:
            with contextlib.suppress(OSError):  # where the kernel permits none
                self._isolated = namespaces.enter_host(
                    root, sandbox, str(layers), _left_out(root, sandbox), parts=wanted
                )
        if self._isolated is not None:
            self.place = self._isolated.root
            os.chdir(self.place)
        self.made: Sequence[str] = ()  # in a fork server of fresh processes: what the live one has made in the tree
        self.dropped: frozenset[str] = frozenset()  # parts in which the tests don't pass
        self.parts = PORTABLE if self._isolated is None else self._isolated.parts | (wanted & {LIMITS})
        self._wants_guard = GUARD in wanted
        self._shared = guard.shared_memory() if self._wants_guard and not kernel.why_not() else frozenset()
        self._text: tuple[str, PythonText] | None = None  # of the file that was mutated last, with its digest
        self._homes = {False: os.path.expanduser("~"), True: os.path.join(temporary, "home")}  # the user's, and ours
        os.makedirs(self._homes[True], exist_ok=True)
        self.enter_home(own=True)

    def enter_home(self, *, own: bool) -> bool:
        """Have this process, and those it starts, find our home directory or the user's; False: the kernel does it."""
        if self._isolated is None:
            os.environ["HOME"] = self._homes[own]
        return self._isolated is None

    def drop(self, parts: Collection[str]) -> None:
        """Do without some parts: the tests don't pass in them."""
        self.dropped |= frozenset(parts)
        self.parts -= frozenset(parts)

    @property
    def keeps_apart(self) -> bool:
        """Whether jobs can run side by side: neither write into the same directory, nor listen at the same port."""
        return self.parts >= {"overlay", "net"}

    @property
    def pristine(self) -> str:
        """Where the user's tree is, in the host and its servers."""
        return self.root if self._isolated is None else self._isolated.covered

    @property
    def undoes_all(self) -> bool:
        """Whether nothing is left of what a job writes, wherever that is."""
        return undoes_all(self.parts)

    @cached_property
    def guards(self) -> bool:
        """Whether a job can have a guard, and is to have one."""
        return self._wants_guard and not guard.why_not()

    @property
    def processes(self) -> frozenset[int]:
        """Children of this process that belong to the world."""
        return frozenset() if self._isolated is None else self._isolated.processes

    def fork(self, parts: Collection[str]) -> tuple[int, ProcessNamespace | None]:
        """In a fork server: fork a process for a job that gets `parts`. Raises OSError.

        The pid, which is 0 in the job, and its process namespace, if it has one.
        """
        if LIMITS in parts:
            _ = self._limits  # here: to find them in each job would take longer
        if "overlay" not in parts and (not self._journals or self._isolated is not None):
            self._journals = list(self._begun_journals(parts))
        return (os.fork(), None) if self._isolated is None else self._isolated.fork(parts)

    @cached_property
    def _limits(self) -> JobLimits:
        return generous_limits()

    def _begun_journals(self, parts: Collection[str]) -> Iterator[Journal]:
        """Begin one for the tree, and one for the temporary files that importing the project has made."""
        kept = str(self._layers / f"kept-{os.getpid()}")
        yield Journal(self.place, self.pristine, f"{kept}-tree")
        if "tmp" not in parts:
            yield Journal(self._temporary, f"{kept}-tmp", f"{kept}-tmp", left_alone=SCRATCH)

    def keep_free(self, count: int) -> None:
        """In a fork server: end the process namespaces that no job has, but for so many."""
        if self._isolated is not None:
            self._isolated.keep_free(count)

    def enter(self, scratch: Path, parts: Collection[str]) -> None:
        """In a forked process: separate it from all others, and make its directory `scratch`.

        Raises OSError when that is impossible, as when the user has deleted the project meanwhile.
        """
        if self._isolated is not None:
            self._isolated.enter_child(parts, self._limits if LIMITS in parts else None)
        self.enter_home(own="home" in parts)
        temporary = scratch / "tmp"
        scratch.mkdir(mode=0o700)
        temporary.mkdir()
        os.environ["TMPDIR"] = str(temporary)
        tempfile.tempdir = None

    def put(self, edit: FileEdit) -> None:
        """In a job: put the mutated file in place. Raises OSError as `enter` does."""
        file = os.path.join(self.place, edit.path)
        write(file, self._mutated(edit))
        MUTATED.add(file)

    def read_ahead(self, edit: FileEdit) -> None:
        """In a fork server: have the text of a file for the jobs to come: the next mutant is most often of it, too."""
        if self._text is None or self._text[0] != edit.digest:
            with contextlib.suppress(Exception):  # a job says so; an audit hook of the project may raise anything
                text = edit.text(self._content(edit))
                text.with_line_ends("")  # finds what it keeps
                self._text = edit.digest, text

    def _mutated(self, edit: FileEdit) -> bytes:
        digest, text = self._text or ("", None)
        return edit.applied(text if text is not None and digest == edit.digest else edit.text(self._content(edit)))

    def _content(self, edit: FileEdit) -> bytes:
        return Path(self.place, edit.path).read_bytes()

    def shares_memory(self) -> bool:
        """In a fork server: whether its jobs reach others by memory that was shared by the project."""
        return self._wants_guard and not kernel.why_not() and bool(guard.shared_memory() - self._shared)

    def put_guarded(self, edit: FileEdit | None, own: Collection[int], log: os.stat_result) -> None:
        """In a job: guard it (`guard.enter`), and have it see the mutated file. Raises OSError as `enter` does."""
        mutant = None
        if edit is not None:
            file = os.path.join(self.place, edit.path)
            mutant = MutantInMemory(file, self._mutated(edit))
        write_none()
        guard.enter(own, log)
        if mutant is not None:
            mutant.put()

    def after_job(self, job: int, namespace: ProcessNamespace | None, *, undo: bool) -> None:
        """In a fork server: a process of this pid has ended. End what it has left, and `undo` what it has written.

        One that has only waited has written nothing, and the files may have been brought up to date meanwhile.
        """
        if self._isolated is not None:
            self._isolated.end_child(job, namespace)
        if self._journals and undo:
            for journal in self._journals:
                journal.undo()
            if self._isolated is not None:  # jobs have a layer of their own: this one was an exception
                self._journals.clear()


def undoes_all(parts: Collection[str]) -> bool:
    """Whether nothing is left of what a job with these parts writes, wherever that is."""
    return frozenset(parts) >= {"overlay", "tmp", "home"}


def new_scratch() -> Path:
    """The name of a directory for one job of this process. It is made in the world of that: most often in a layer."""
    return Path(tempfile.gettempdir(), f"{SCRATCH}{os.getpid()}-{next(NUMBERS)}")


def _left_out(root: str, sandbox: str) -> list[str]:
    """The directories of the real tree, and links to some, that the sandbox does not have, such as environments.

    An empty directory in the sandbox is none: there an earlier host has mounted the real one.
    """
    with os.scandir(root) as entries:
        return [
            entry.name
            for entry in entries
            if entry.is_dir() and entry.name not in NEVER_KEPT and _is_absent(os.path.join(sandbox, entry.name))
        ]


def _is_absent(path: str) -> bool:
    return not os.path.lexists(path) or (os.path.isdir(path) and not os.path.islink(path) and not os.listdir(path))


def write(path: str, content: bytes) -> None:
    """Write a mutated file. Its time follows from its content: no bytecode of another version passes for its own."""
    with open(path, "wb") as file:
        file.write(content)
    seconds = TIME_OF_MUTANTS + int.from_bytes(hashlib.blake2b(content, digest_size=4).digest(), "big") % (1 << 28)
    os.utime(path, (seconds, seconds))
