"""The command line. Each command is a file of its own, imported only when it is called: `serve` must start fast."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

import click

from msp_bridge import __version__
from msp_bridge.errors import BridgeError, CommandLineError, SeveralErrors

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

FAILED, WRONG_COMMAND_LINE = 1, 2  # exit codes; 2 is also click's own
COMMANDS = {
    "serve": "Serve MSP to editors, on stdio or a socket.",
    "run": "Test mutants and show what the tests miss.",
    "merge": "Make one report of several, as of the shards of a CI job.",
    "discover": "List mutants without testing them.",
    "doctor": "Say what was found, what is wrong, and how to mend it.",
    "editors": "Print what an editor needs: its settings, or a plugin.",
    "completion": "Print the script that makes a shell complete the command line.",
}


class Commands(click.Group):
    """Imports a command when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order of a reader's interest."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of the module `msp_bridge.cli.<name>`."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"msp_bridge.cli.{cmd_name}").command
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Without importing the commands."""
        from click.shell_completion import CompletionItem

        names = [CompletionItem(name, help=text) for name, text in COMMANDS.items() if name.startswith(incomplete)]
        return [*names, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Without importing the commands."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="msp-bridge")
def msp_bridge() -> None:
    """One mutation server for every editor and every mutation testing tool.

    In a project with mutmut, cosmic-ray, StrykerJS or another tool, `msp-bridge run` shows which bugs its tests would
    miss, and `msp-bridge doctor` what stands in the way. Editors start `msp-bridge serve stdio`.
    """


def main() -> None:
    """The console script. Each thing that the user can mend is a line on stderr; there is one exit code."""
    try:
        msp_bridge()
    except BridgeError as error:
        for each in error.errors if isinstance(error, SeveralErrors) else (error,):
            click.echo(f"msp-bridge: {each}", err=True)
        raise SystemExit(WRONG_COMMAND_LINE if isinstance(error, CommandLineError) else FAILED) from None
