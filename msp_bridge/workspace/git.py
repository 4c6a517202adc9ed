"""Revision: the commit that is checked out, and `git`, which gives the output of a command of git."""

from __future__ import annotations

import asyncio
import logging
import os
from pathlib import Path

from attrs import frozen

from msp_bridge.errors import ToolError
from msp_bridge.processes import ProcessTree

log = logging.getLogger(__name__)

STATUS = [
    "--no-optional-locks",  # else it writes its index anew into the repository
    *("status", "--porcelain=v2", "--branch", "--untracked-files=no", "--ignore-submodules"),
]
STATUS_S = 10  # a repository may be large, and on a slow disk
NO_COMMIT, NO_BRANCH = "(initial)", "(detached)"


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
