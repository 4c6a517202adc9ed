"""Changes: which lines of a project are not as they were in a revision of its git repository."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from attrs import frozen

from msp_bridge.errors import ConfigurationError
from msp_bridge.model import Mutant
from msp_bridge.processes import ProcessTree

DIFF = [
    *("-c", "diff.autoRefreshIndex=false"),  # else it writes its index anew into the repository
    *("diff", "--unified=0", "--inter-hunk-context=0", "--relative", "--find-renames", "--ignore-submodules"),
    *("--no-color", "--no-ext-diff", "--no-textconv", "--src-prefix=a/", "--dst-prefix=b/"),
]
HUNK = re.compile(rb"@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
NEW_NAME = b"+++ "
EVERY_LINE = range(1, sys.maxsize)

Lines = dict[str, list[range]]


@frozen
class Changes:
    """Changed lines, 1-based, by path relative to the project's root."""

    lines: Mapping[str, Sequence[range]]

    @classmethod
    async def since(cls, root: Path, revision: str) -> Changes:
        """What has changed since `HEAD` and `revision` parted: committed or not, and files that are not tracked yet.

        So what others have done on `revision` since doesn't count. Raises ConfigurationError.
        """
        base = await _merge_base(root, revision)
        try:
            lines = changed_lines(await _git(root, *DIFF, base, "--", "."))
            untracked = await _git(root, "ls-files", "--others", "--exclude-standard", "-z")
        except GitFailed as error:
            raise ConfigurationError(f"git failed: {error}") from None
        for name in filter(None, untracked.split(b"\0")):
            lines[os.fsdecode(name)] = [EVERY_LINE]
        return cls(lines)

    def touch(self, mutant: Mutant) -> bool:
        """Whether a line of `mutant` has changed."""
        start, end = mutant.location.start, mutant.location.end
        last = end.line - 1 if end.column == 1 and end.line > start.line else end.line
        return any(lines.start <= last and start.line < lines.stop for lines in self.lines.get(mutant.path, ()))


def changed_lines(diff: bytes) -> Lines:
    """Of the files as they are now, from the text of a diff without context.

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
        await _git(root, "rev-parse", "--show-toplevel")
    except GitFailed as error:
        raise ConfigurationError(f"changes since a revision need a git repository around {root}: {error}") from None
    try:
        commit = await _git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    except GitFailed:
        raise ConfigurationError(
            f"git has no revision {revision!r} in {root}", "if it is a remote branch, fetch it first"
        ) from None
    try:
        base = await _git(root, "merge-base", os.fsdecode(commit.split()[-1]), "HEAD")
    except GitFailed:
        raise ConfigurationError(
            f"{revision} and HEAD have no common ancestor here",
            "if the clone is shallow, as in CI, fetch the whole history first: git fetch --unshallow",
        ) from None
    return os.fsdecode(base.strip())


class GitFailed(Exception):
    """With what git says about it."""


async def _git(root: Path, *arguments: str) -> bytes:
    """The output of a git command. Raises GitFailed; ToolError when there is no git."""
    async with ProcessTree.running(["git", *arguments], cwd=root) as git:
        output = bytearray()
        while data := await git.read():
            output += data
        if await git.exited() == 0:
            return bytes(output)
        said = git.errors.strip().splitlines()
        raise GitFailed(said[0].removeprefix("fatal: ") if said else f"exit code {git.returncode}")
