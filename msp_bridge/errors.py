"""The errors that reach a user: each says what is wrong (`problem`) and what to do next (`remedy`).

What a peer sends wrongly is a `jsonrpc` error; any other exception is a fault of the bridge itself.
"""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Collection, Sequence
from typing import Self

SEE_DOCTOR = "`msp-bridge doctor` says what is missing"  # a remedy; `doctor` itself leaves it out


class ShellCommand(str):
    """A remedy that is one command of a shell, to be typed in the project's root. `doctor` ends with the first one."""

    __slots__ = ()

    def inside(self, directory: str) -> ShellCommand:
        """The same, typed where the project's root is called `directory`."""
        return ShellCommand(f"(cd {shlex.quote(directory)} && {self})")


class MachineCommand(ShellCommand):
    """A command that does the same in each directory, as one that installs a program for all projects."""

    __slots__ = ()

    def inside(self, directory: str) -> ShellCommand:
        """The command itself."""
        return self


class BridgeError(Exception):
    """Something that the user can fix.

    `problem` is one clause without a full stop. `remedy` is the command to run or the setting to change, None where
    there is none; a `ShellCommand` when it is a command and nothing else. `str()` joins them for one line of a
    protocol or a log. `doctor` shows them apart: it reads the two attributes, and nothing parses the text.
    """

    def __init__(self, problem: str, remedy: str | None = None) -> None:
        super().__init__(problem, remedy)
        self.problem, self.remedy = problem, remedy

    def __str__(self) -> str:
        """Problem and remedy in one line."""
        # What a tool says, which is a part of some problems, may have a full stop.
        return self.problem if self.remedy is None else f"{self.problem.rstrip('.')}: {self.remedy}"

    def labelled(self, label: str) -> Self:
        """The same error of the same class, with `label` before its problem: which of several projects has it."""
        labelled = type(self).__new__(type(self))  # subclasses have constructors of their own
        labelled.__dict__.update(self.__dict__)
        labelled.problem = f"{label}: {self.problem}"
        labelled.args = (labelled.problem, self.remedy)
        return labelled


class SeveralErrors(BridgeError):
    """Errors of several projects of one workspace, in `errors`. None of the requested projects succeeded."""

    def __init__(self, errors: Sequence[BridgeError]) -> None:
        super().__init__("; ".join(map(str, errors)))
        self.errors = tuple(errors)


class ConfigurationError(BridgeError):
    """The configuration of the bridge or of a tool is wrong, or names something that does not exist."""


class CommandLineError(ConfigurationError):
    """A command line option is wrong, or names something that does not exist. Commands exit with 2."""


class ToolError(BridgeError):
    """A mutation testing tool is missing, too old, has crashed, or can't work on this project."""


class BaselineError(ToolError):
    """The tests fail without any mutant, so there are no verdicts. `msp-bridge run` exits with 3.

    `failing` are the names of the failing tests, as far as the tool names them. `first_failure` is what the first of
    them prints (several lines), "" when it is not known.
    """

    def __init__(
        self, problem: str, remedy: str | None = None, failing: Sequence[str] = (), first_failure: str = ""
    ) -> None:
        super().__init__(problem, remedy)
        self.failing, self.first_failure = tuple(failing), first_failure


def suggestion(wrong: str, known: Collection[str], otherwise: str | None = None) -> str:
    """The remedy for a name that is none of `known`: the nearest of them, else `otherwise`, else all in their order."""
    close = difflib.get_close_matches(wrong, known, 1)
    return f"did you mean {close[0]!r}?" if close else otherwise or f"choose from {', '.join(known)}"
