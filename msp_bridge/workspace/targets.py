"""Targets that users select: paths, lines, places, lines that differ from a git revision; Revision: the commit.

They write files, directories, lines (`cart.py:12`, `:10-20`) and places (`:12:5`), relative to the current directory,
or, where nothing is there, to the project's root: so whatever is printed is accepted back. `Changes` are the lines of a
project that are not as they were in a revision of its git repository.
"""

from __future__ import annotations

import asyncio
import contextlib
import difflib
import logging
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from attrs import evolve, frozen

from msp_bridge.errors import ConfigurationError, ToolError
from msp_bridge.model import Location, Mutant, Position
from msp_bridge.processes import ProcessTree
from msp_bridge.source import SourceText, last_line
from msp_bridge.text import shortened
from msp_bridge.workspace.selection import MAGIC, Selection, Target, relative_path

log = logging.getLogger(__name__)

STATUS = [
    "--no-optional-locks",  # else it writes its index anew into the repository
    *("status", "--porcelain=v2", "--branch", "--untracked-files=no", "--ignore-submodules"),
]
STATUS_S = 10  # a repository may be large, and on a slow disk
NO_COMMIT, NO_BRANCH = "(initial)", "(detached)"
LINES = re.compile(r"(?P<path>.+?):(?P<first>\d+)(?:-(?P<last>\d+)|:(?P<column>\d+))?$")  # 12, 10-20, 12:5
DIFF = [
    *("-c", "diff.autoRefreshIndex=false"),  # else it writes its index anew into the repository
    *("diff", "--unified=0", "--inter-hunk-context=0", "--relative", "--find-renames", "--ignore-submodules"),
    *("--no-color", "--no-ext-diff", "--no-textconv", "--src-prefix=a/", "--dst-prefix=b/"),
]
HUNK = re.compile(rb"@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
NEW_NAME = b"+++ "
MAX_SHOWN = 300  # characters of a path in a message
EVERY_LINE = range(1, sys.maxsize)
Lines = dict[str, list[range]]


class GitFailed(Exception):
    """A command of git has failed; the message is git's."""


@frozen
class Revision:
    """The commit that is checked out."""

    commit: str  # its whole hash
    changed: bool  # whether a file that git tracks differs from it
    branch: str | None  # None when HEAD is detached

    @classmethod
    async def of(cls, root: Path) -> Revision | None:
        """The revision of the repository around `root`; None where there is none, or git says nothing in time."""
        try:
            async with asyncio.timeout(STATUS_S):
                lines = os.fsdecode(await git(root, *STATUS)).splitlines()
        except (GitFailed, ToolError, TimeoutError) as error:
            log.info("the commit of %s is not known: %s", root, error)
            return None
        headers = [line.split(" ", 2) for line in lines if line.startswith("# ")]
        said = {name: value for _, name, value in headers}
        commit, branch = said["branch.oid"], said["branch.head"]
        changed = len(lines) > len(headers)
        return None if commit == NO_COMMIT else cls(commit, changed, None if branch == NO_BRANCH else branch)


async def origin(root: Path) -> str | None:
    """The address of the remote `origin`; None where there is none."""
    try:
        return os.fsdecode(await git(root, "remote", "get-url", "origin")).strip()
    except (GitFailed, ToolError):
        return None


async def git(root: Path, *arguments: str) -> bytes:
    """The output of a git command. Raises GitFailed; ToolError when there is no git."""
    async with ProcessTree.running(["git", *arguments], cwd=root) as tree:
        output = await tree.output()
        if await tree.exited() == 0:
            return output
        said = tree.errors.strip().splitlines()
        raise GitFailed(said[0].removeprefix("fatal: ") if said else f"exit code {tree.returncode}")


@frozen
class Selected:
    """The selection of paths: `selection` is what to discover, and `takes` what to keep of that."""

    selection: Selection
    _rest: Selection  # what is selected otherwise than by LINE:COL
    _starts: frozenset[tuple[str, Position]]
    changes: Changes | None = None

    async def since(self, root: Path, revision: str) -> Selected:
        """Keep what has changed in git since HEAD and `revision` parted. Raises ConfigurationError."""
        changes, selection = await Changes.since(root, revision), self.selection
        if selection.targets is None:
            selection = Selection(targets=tuple(map(Target, changes.lines))).within(root)
        return evolve(self, selection=selection, changes=changes)

    def takes(self, mutant: Mutant) -> bool:
        """Whether `mutant` is wanted."""
        touched = self.changes is None or self.changes.touch(mutant)
        return touched and self.selection.takes(mutant) and self._names(mutant)

    def _names(self, mutant: Mutant) -> bool:
        if not self._starts or (mutant.path, mutant.location.start) in self._starts:
            return True
        return not self._rest.empty and self._rest.scope.covers(mutant.path) and self._rest.takes(mutant)


def select(root: Path, paths: Sequence[str]) -> Selected:
    """Select by `paths`; everything when there are none. Raises ConfigurationError for a typing error."""
    targets, files, starts = [], [], set()
    for path in paths:
        target, start = _target(root, path)
        if start is None:
            targets.append(target)
        else:
            files.append(target)
            starts.add((str(relative_path(root, target.path)), start))
    whole = Selection(targets=(*targets, *files)) if paths else Selection()
    return Selected(whole.within(root), Selection(targets=tuple(targets)).within(root), frozenset(starts))


def _target(root: Path, path: str) -> tuple[Target, Position | None]:
    """The target, and the position of LINE:COL."""
    if not path.strip():
        raise ConfigurationError("a path is empty")
    found = _existing(root, path)
    lines = None if found else LINES.match(path)
    name = lines["path"] if lines else path
    absolute = found or _existing(root, name)
    if absolute is None:
        pattern = "patterns are not taken: name files and directories" if MAGIC.intersection(name) else None
        raise ConfigurationError(f"there is no file or directory {shortened(name, MAX_SHOWN)}{_nearest(name)}", pattern)
    if relative_path(root, absolute) is None:
        raise ConfigurationError(f"{shortened(name, MAX_SHOWN)} lies outside the project {root}; see --root")
    if not lines:
        return Target(absolute), None
    first, column = int(lines["first"]), lines["column"] and int(lines["column"])
    last = int(lines["last"] or first)
    if not 1 <= first <= last or column == 0:
        raise ConfigurationError(f"{shortened(path, MAX_SHOWN)}: lines count from 1, the first before the last")
    if (source := SourceText.read_or_none(Path(absolute))) is not None and first > source.line_count:
        raise ConfigurationError(f"{shortened(path, MAX_SHOWN)}: the file has {source.line_count} lines")
    if column:
        return Target(absolute), Position(first, column)
    return Target(absolute, Location(Position(first, 1), Position(last + 1, 1))), None


def _existing(root: Path, name: str) -> str | None:
    """The absolute path of what the name leads to from here, else from the root."""
    return next((os.path.abspath(path) for path in (name, root / name) if os.path.exists(path)), None)


def _nearest(name: str) -> str:
    """A suggestion for a typing error in the last part of a path."""
    if len(name) > MAX_SHOWN:
        return ""
    directory = Path(name).parent
    with contextlib.suppress(OSError):
        if close := difflib.get_close_matches(Path(name).name, os.listdir(directory), 1):
            return f"; did you mean {directory / close[0]}?"
    return ""


@frozen
class Changes:
    """Changed lines, 1-based, by path relative to the project's root."""

    lines: Mapping[str, Sequence[range]]

    @classmethod
    async def since(cls, root: Path, revision: str) -> Changes:
        """Changes since `HEAD` and `revision` parted: committed or not, and files that are not tracked yet.

        So what others have done on `revision` since doesn't count. Raises ConfigurationError.
        """
        base = await _merge_base(root, revision)
        try:
            lines = changed_lines(await git(root, *DIFF, base, "--", "."))
            untracked = await git(root, "ls-files", "--others", "--exclude-standard", "-z")
        except GitFailed as error:
            raise ConfigurationError(f"git failed: {error}") from None
        for name in filter(None, untracked.split(b"\0")):
            lines[os.fsdecode(name)] = [EVERY_LINE]
        return cls(lines)

    def touch(self, mutant: Mutant) -> bool:
        """Whether a line of `mutant` has changed."""
        first, last = mutant.location.start.line, last_line(mutant.location)
        return any(lines.start <= last and first < lines.stop for lines in self.lines.get(mutant.path, ()))


def changed_lines(diff: bytes) -> Lines:
    """Changed lines of the files as they are now, from the text of a diff without context.

    Where lines are only gone, the one before and the one after count: that is where the code does something else.
    """
    changed: Lines = {}
    hunks: list[range] = []
    body = 0  # lines of the present hunk that are still to come: what they say is no header
    for line in diff.split(b"\n"):
        if body:
            body -= not line.startswith(b"\\")  # "\ No newline at end of file"
        elif match := HUNK.match(line):
            start, gone, come = int(match[2]), int(match[1] or 1), int(match[3] or 1)
            hunks.append(range(start, start + come) if come else range(start, start + 2))
            body = gone + come
        elif line.startswith(NEW_NAME) and line != b"+++ /dev/null":
            hunks = changed.setdefault(_name(line.removeprefix(NEW_NAME)), [])
        elif line.startswith(b"diff --git "):
            hunks = []
    return changed


def _name(quoted: bytes) -> str:
    """git quotes a name with unusual characters as C does, and marks the end of one with blanks by a tab."""
    name = quoted.removesuffix(b"\t")
    if name.startswith(b'"'):
        name = name[1:-1].decode("unicode_escape").encode("latin-1")
    return os.fsdecode(name.removeprefix(b"b/"))


async def _merge_base(root: Path, revision: str) -> str:
    try:
        await git(root, "rev-parse", "--show-toplevel")
    except GitFailed as error:
        raise ConfigurationError(f"changes since a revision need a git repository around {root}: {error}") from None
    try:
        commit = await git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    except GitFailed:
        raise ConfigurationError(
            f"git has no revision {revision!r} in {root}", "if it is a remote branch, fetch it first"
        ) from None
    try:
        base = await git(root, "merge-base", os.fsdecode(commit.split()[-1]), "HEAD")
    except GitFailed:
        raise ConfigurationError(
            f"{revision} and HEAD have no common ancestor here",
            "if the clone is shallow, as in CI, fetch the whole history first: git fetch --unshallow",
        ) from None
    return os.fsdecode(base.strip())
