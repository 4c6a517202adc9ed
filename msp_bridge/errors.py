"""The errors that reach a user: each says what is wrong (`problem`) and what to do next (`remedy`).

What a peer sends wrongly is a `jsonrpc` error; any other exception is a fault of the bridge itself.
"""

from __future__ import annotations

from collections.abc import Sequence


class BridgeError(Exception):
    """Something that the user can fix.

    `problem` is one clause without a full stop. `remedy` is the command to run or the setting to change, None where
    there is none. `str()` joins them for one line of a protocol or a log. `doctor` shows them apart: it reads the two
    attributes, and nothing parses the text.
    """

    def __init__(self, problem: str, remedy: str | None = None) -> None:
        super().__init__(problem, remedy)
        self.problem, self.remedy = problem, remedy

    def __str__(self) -> str:
        """Problem and remedy in one line."""
        return self.problem if self.remedy is None else f"{self.problem}: {self.remedy}"


class SeveralErrors(BridgeError):
    """Errors of several projects of one workspace, in `errors`. No project of those that were asked for succeeded."""

    def __init__(self, errors: Sequence[BridgeError]) -> None:
        super().__init__("; ".join(map(str, errors)))
        self.errors = tuple(errors)


class PartlyFailed(SeveralErrors):
    """Errors of some projects, raised when the other projects have finished their part."""


class ConfigurationError(BridgeError):
    """The configuration of the bridge or of a tool is wrong, or names something that does not exist."""


class CommandLineError(ConfigurationError):
    """A command line option is wrong, or names something that does not exist. Commands exit with 2."""


class ToolError(BridgeError):
    """A mutation testing tool is missing, too old, has crashed, or can't work on this project."""
