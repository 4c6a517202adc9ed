"""The families of errors that reach a user. Each message is one clear sentence that says what to do next.

What the peer sent wrongly is `rpc.errors.RpcError`; any other exception is a fault of our own.
"""

from __future__ import annotations


class BridgeError(Exception):
    """Something that the user can mend; several things, of several projects, are an argument each."""

    def __str__(self) -> str:
        """All in one line, for a protocol's message."""
        return "; ".join(map(str, self.args))


class PartlyFailed(BridgeError):
    """Some projects of a workspace couldn't do their part, the others have done theirs. Raised when they are done."""


class ConfigurationError(BridgeError):
    """The bridge's or a tool's configuration is wrong, or names what is not there."""


class CommandLineError(ConfigurationError):
    """An option of the command line names what is not there, or can't be used. Commands end with 2."""


class ToolError(BridgeError):
    """A mutation testing tool is missing, too old, crashed, or can't work on this project."""
