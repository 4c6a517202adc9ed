"""The command line. Each command is in a module that is imported only when it is called: `serve` must start fast.

Exit codes are those of `Exit`. An error that a user can fix is a line on stderr, with its remedy; so is an unexpected
one, whose traceback is in the log (`--log-level debug`). No text of a project reaches the terminal with control
characters in it, and standard output takes every text, whatever its encoding.
"""

from __future__ import annotations

import enum
import errno
import gc
import importlib
import io
import itertools
import logging
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

import click

from msp_bridge import __version__
from msp_bridge.errors import BaselineError, BridgeError, ConfigurationError, SeveralErrors, ToolError, suggestion

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem
    from typing_extensions import Buffer

    from msp_bridge.notices import Told

log = logging.getLogger(__name__)

COMMANDS = {  # name: module and object, what it does, and the topic of `docs` that says more
    "serve": ("serve:command", "Serve editors or coding agents, on stdio or a socket.", "editors"),
    "init": (
        "init:command",
        "Set a project up: propose a tool for each language, and write what it needs.",
        "command-line",
    ),
    "run": ("run:run", "Test mutants and show what the tests miss.", "ci"),
    "results": ("results:results", "Show the last results again, without testing.", "survivors"),
    "show": ("results:show_command", "Show one mutant: its diff, its tests, its history.", "survivors"),
    "browse": ("browse:command", "Work through the last results in the terminal.", "survivors"),
    "accept": ("results:accept", "Accept survivors that no test can or should kill.", "equivalent-mutants"),
    "apply": ("apply:command", "Write a mutant into your file to debug with it, and take it back.", "survivors"),
    "watch": ("watch:command", "Test the mutants of what you save.", "survivors"),
    "diff": ("compare:command", "Show what has changed between two runs.", "survivors"),
    "trend": ("compare:trend", "Show the mutation score of each kept run.", "survivors"),
    "merge": ("compare:merge", "Make one report of several, as of the shards of a CI job.", "ci"),
    "discover": ("run:discover", "List mutants without testing them.", "command-line"),
    "doctor": ("doctor:command", "Show what was found, what is wrong, and how to fix it.", "configuration"),
    "docs": ("docs:command", "Show a page of the documentation.", "command-line"),
    "editors": ("editors:command", "Print what an editor needs: its settings, or a plugin.", "editors"),
    "cache": ("cache:command", "Show what is cached for each project, or clear it.", "configuration"),
    "completion": ("editors:completion", "Print the script by which a shell completes commands.", "command-line"),
}
MAX_NAMED = 10  # failing tests that are listed
MAX_FAILURE_LINES = 20  # of the first failure: from its beginning and its end


class Exit(enum.IntEnum):
    """The exit codes of commands."""

    FINE = 0
    BELOW_THRESHOLD = 1  # of `doctor`: something is wrong; of `serve`: it can't serve
    USAGE = 2  # the command line or the configuration is wrong, or a file can't be read or written; also click's
    NO_VERDICTS = 3  # the tests fail without any mutant, or the tool can't run
    INTERRUPTED = 130  # as shells have it for SIGINT
    BROKEN_PIPE = 141  # as shells have it for SIGPIPE

    @classmethod
    def of(cls, error: BridgeError) -> Exit:
        """The exit code of a command that ends with `error`."""
        if isinstance(error, StdoutFailed):
            return error.code
        if isinstance(error, SeveralErrors):
            return cls.USAGE if all(isinstance(each, ConfigurationError) for each in error.errors) else cls.NO_VERDICTS
        if isinstance(error, ConfigurationError):
            return cls.USAGE
        return cls.NO_VERDICTS if isinstance(error, ToolError) else cls.BELOW_THRESHOLD


class Commands(click.Group):
    """Imports a command when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all commands, the most interesting first."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The object that `COMMANDS` names."""
        if cmd_name not in COMMANDS:
            return None
        place, _, topic = COMMANDS[cmd_name]
        module, name = place.split(":")
        command: click.Command = getattr(importlib.import_module(f"msp_bridge.cli.{module}"), name)
        command.epilog = f"More: msp-bridge docs {topic}"
        if not gc.isenabled():  # `main` has begun with that
            gc.freeze()
            gc.enable()
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve a command as click does; suggest one for a typing error, and refuse an option's empty value."""
        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            raise click.UsageError(f"there is no command {args[0]!r}; {suggestion(args[0], COMMANDS)}", ctx)
        for option, value in itertools.pairwise([arg for each in args for arg in each.split("=", 1)]):
            if (
                len(option) > 2 and option.startswith("--") and not value
            ):  # as of `--root "$UNSET"`, which must not mean another directory
                raise click.UsageError(f"the value of {option} is empty", ctx)
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete the name of a command, without importing any."""
        from click.shell_completion import CompletionItem

        found = {name: text for name, (_, text, _) in COMMANDS.items() if name.startswith(incomplete)}
        names = [CompletionItem(name, help=text) for name, text in found.items()]
        return [*names, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands, without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text, _) in COMMANDS.items()])


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="msp-bridge")
def msp_bridge() -> None:
    """One mutation server for every editor and every mutation testing tool.

    In a project with mutmut, cosmic-ray, StrykerJS or another tool, `msp-bridge run` shows which bugs its tests would
    miss, and `msp-bridge doctor` what stands in the way. Editors start `msp-bridge serve stdio`.
    `msp-bridge docs` lists the pages of the documentation.
    """


def main() -> NoReturn:
    """The console script. Every way in which a command can end leads to one exit code."""
    if sys.platform == "win32":
        raise SystemExit("msp-bridge runs on Linux and macOS: on Windows, run it in WSL")
    gc.disable()  # while modules are loaded, which stay: to look for cycles in them is a twentieth of the start
    if isinstance(sys.stdout, io.TextIOWrapper) and _has_descriptor(sys.stdout):
        sys.stdout = _text(_Stdout(sys.stdout.fileno(), "w", closefd=False), sys.stdout)
    if isinstance(sys.stderr, io.TextIOWrapper):
        sys.stderr.reconfigure(errors="backslashreplace")
    code = run_command()
    try:
        sys.stdout.flush()
    except StdoutFailed as error:
        show([error])
        code = code or error.code
    raise SystemExit(code)


def _has_descriptor(stream: io.TextIOWrapper) -> bool:
    """Whether it is a stream of the system: a program that calls `main` may have put another one in its place."""
    try:
        return stream.fileno() >= 0
    except io.UnsupportedOperation:
        return False


def run_command(arguments: Sequence[str] | None = None) -> int:
    """Run the command of `arguments`, by default the program's, and return its exit code."""
    try:
        return msp_bridge.main(arguments, standalone_mode=False) or Exit.FINE
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        click.echo("msp-bridge: interrupted", err=True)
        return Exit.INTERRUPTED
    except BridgeError as error:
        show(error.errors if isinstance(error, SeveralErrors) else (error,))
        return Exit.of(error)
    except Exception as error:
        log.debug("unexpected", exc_info=True)
        remedy = "this is a fault of the bridge or an adapter; please report it, with the output of --log-level debug"
        show([BridgeError(f"{type(error).__name__}: {error}", remedy)])
        return Exit.NO_VERDICTS


class StdoutFailed(ConfigurationError):
    """Standard output can't be written to: it is full, or its reader has ended."""

    def __init__(self, error: OSError) -> None:
        super().__init__(f"can't write to standard output: {error.strerror}")
        self.hung_up = error.errno == errno.EPIPE  # as of `| head`

    @property
    def code(self) -> Exit:
        """The exit code of a command that ends with it."""
        return Exit.BROKEN_PIPE if self.hung_up else Exit.USAGE


class _Stdout(io.FileIO):
    """Standard output, whose errors differ from those of files. What comes after the first error is dropped."""

    _failed = False

    def write(self, data: Buffer, /) -> int:
        size = memoryview(data).nbytes
        if self._failed:
            return size
        try:
            return super().write(data) or 0
        except OSError as error:
            self._failed = True
            raise StdoutFailed(error) from None


def _text(raw: io.FileIO, like: io.TextIOWrapper) -> io.TextIOWrapper:
    return io.TextIOWrapper(
        io.BufferedWriter(raw), like.encoding, "backslashreplace", newline=None, line_buffering=like.line_buffering
    )


def show(errors: Sequence[BridgeError]) -> None:
    """A line on stderr for each error; of a red baseline also the failing tests and the first failure."""
    from msp_bridge.text import one_line

    for error in errors:
        if isinstance(error, StdoutFailed) and error.hung_up:
            continue
        click.echo(f"msp-bridge: {one_line(str(error))}", err=True)
        if isinstance(error, BaselineError):
            show_failing_tests(error.failing, error.first_failure)


def show_remarks(told: Told) -> None:
    """Print the facts that explain an answer on stderr."""
    from msp_bridge.text import one_line

    for remark in told.remarks:
        click.echo(f"msp-bridge: {one_line(remark)}", err=True)


def show_failing_tests(names: Sequence[str], first_failure: str) -> None:
    """Print on stderr the tests that fail without any mutant, and what the first of them prints."""
    from msp_bridge.text import first_of, one_line, visible

    for name in first_of(names, MAX_NAMED, one_line):
        click.echo(f"    {name}", err=True)
    lines = visible(first_failure).strip().splitlines()
    if len(lines) > MAX_FAILURE_LINES:
        half = MAX_FAILURE_LINES // 2
        lines[half:-half] = [f"… {len(lines) - 2 * half} more lines"]
    for line in lines:
        click.echo(f"    | {line}", err=True)
