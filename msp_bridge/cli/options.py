"""The options that every command has: which project, which tool, and what is logged where."""

from __future__ import annotations

import logging
import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from attrs import frozen

from msp_bridge.environment.distributions import installed
from msp_bridge.environment.interpreter import interpreter_of
from msp_bridge.errors import CommandLineError, ConfigurationError, suggestion
from msp_bridge.text import visible
from msp_bridge.workspace.configuration import Configuration, check_adapters
from msp_bridge.writing import open_private, writing_to

if TYPE_CHECKING:
    from msp_bridge.workspace.workspace import Workspace

    AnyChoice = click.Choice[str]
else:
    AnyChoice = click.Choice  # which takes no type before click 8.2

Command = TypeVar("Command", bound=Callable[..., Any])
LEVELS = ["debug", "info", "warning", "error"]
MAX_REMEMBERED = 10_000  # texts of warnings


class Choice(AnyChoice):
    """One of several names. A typing error gets a suggestion."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Implement `click.ParamType`."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(f"there is no {value!r}; {suggestion(value, self.choices)}", param, ctx)


def _adapters(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """For the shell's completion."""
    return [name for name in installed() if name.startswith(incomplete)]


CLUSTER = click.Option(
    ["--cluster"], metavar="ADDRESS", help="Test on the workers of the Dask scheduler there, such as tcp://host:8786."
)
OPTIONS: list[click.Parameter] = [
    click.Option(
        ["--root"],
        type=click.Path(file_okay=False),
        help="The project's directory.  [default: the current one, or the nearest above it that has a project]",
    ),
    click.Option(
        ["--adapter"],
        metavar="NAME",
        shell_complete=_adapters,
        help="The tool to use, when a project has several: mutmut, cosmic-ray, stryker-js, stryker-net, cargo-mutants, "
        "gremlins, pit, generic, or that of a plugin.",
    ),
    click.Option(
        ["--config"], type=click.Path(), metavar="FILE", help="A configuration file: the tool's, or the bridge's own."
    ),
    click.Option(
        ["--python"],
        type=click.Path(),
        metavar="PATH",
        help="The project's interpreter or virtual environment.  [default: found]",
    ),
    click.Option(
        ["-j", "--jobs"], type=click.IntRange(1), metavar="N", help="Mutants to test at once.  [default: one per core]"
    ),
    click.Option(
        ["-v", "--verbose"],
        count=True,
        show_default=False,
        help="Log more on stderr: as --log-level info, and -vv as debug.",
    ),
    click.Option(
        ["-q", "--quiet"], is_flag=True, help="Show only the summary (doctor: what is wrong), and log only errors."
    ),
    click.Option(
        ["--log-level"],
        type=Choice(LEVELS, case_sensitive=False),
        envvar="MSP_BRIDGE_LOG",
        show_envvar=True,
        help="What to log on stderr.",
    ),
    click.Option(["--log-file"], type=click.Path(), metavar="FILE", help="Log to this file too, with times."),
]


@frozen
class Options:
    """The values of these options."""

    root: Path
    named: str | None  # a configuration file
    configuration: Configuration
    log_level: str | None
    log_file: Path | None
    quiet: bool = False

    @classmethod
    def of(cls, values: Mapping[str, Any], *, search: bool = False) -> Options:
        """Make them from click's values by name; a command may have only some of the options. Raises CommandLineError.

        Without a root it is the current directory, or the enclosing project's if that is to be searched for.
        """
        root = Path(os.path.abspath(values.get("root") or "."))
        if not root.is_dir():
            raise CommandLineError(f"--root: there is no directory {root}")
        config, python = values.get("config"), values.get("python")
        named = config and os.path.abspath(config)
        configuration = Configuration(
            adapters=_adapter(values.get("adapter")),
            python=Path(os.path.abspath(Path(python).expanduser())) if python else None,
            jobs=values.get("jobs"),
            cluster=values.get("cluster"),
        )
        if search and not values.get("root"):
            from msp_bridge.workspace.detection import project_root  # here: an editor waits for `serve stdio`

            root = project_root(root, configuration, named)
        quiet, verbose = values.get("quiet") or False, values.get("verbose") or 0
        level = {0: "error" if quiet else None, 1: "info"}.get(verbose, "debug")
        return cls(
            root=root,
            named=named,
            configuration=configuration,
            log_level=values.get("log_level") or level,
            log_file=outside(root, values.get("log_file"), "--log-file"),
            quiet=quiet,
        )

    @classmethod
    def of_command(cls, values: Mapping[str, Any], usual_level: str) -> Options:
        """The options of a command in a terminal, checked; logging has begun. Raises CommandLineError."""
        options = cls.of(values, search=True)
        options.check()
        options.start_logging(usual_level)
        return options

    def open_workspace(self) -> Workspace:
        """The workspace that the options name. Raises BridgeError."""
        from msp_bridge.workspace.workspace import Workspace  # here: an editor waits for `serve stdio`

        return Workspace.open(self.root, self.configuration, self.named)

    def check(self) -> None:
        """Raises CommandLineError when the configuration file or the interpreter that was named is not there.

        `serve` doesn't check: it answers requests with the error, and what is missing may be created meanwhile.
        """
        if self.named is not None and not os.path.isfile(self.named):
            raise CommandLineError(f"--config: there is no file {self.named}")
        if self.configuration.python is not None and interpreter_of(self.configuration.python) is None:
            raise CommandLineError(f"--python: there is no interpreter {self.configuration.python}")

    def start_logging(self, usual: str) -> None:
        """One line for each event on stderr, of the level `usual` when the user named none; stdout is never touched.

        A warning is shown once, however often its text comes: the log file has each, with its time. That file has at
        least what is of interest (info). Raises CommandLineError.
        """
        stderr = logging.StreamHandler(sys.stderr)
        stderr.setLevel((self.log_level or usual).upper())
        stderr.setFormatter(_VisibleFormatter("msp-bridge: %(levelname)s: %(message)s"))
        stderr.addFilter(_WarningsOnce())
        handlers: list[logging.Handler] = [stderr]
        if self.log_file is not None:
            handlers.append(_file_handler(self.log_file, (self.log_level or "info").upper()))
        logging.basicConfig(level=min(handler.level for handler in handlers), handlers=handlers, force=True)


class _WarningsOnce(logging.Filter):
    """Keeps back a warning whose text was shown before."""

    def __init__(self) -> None:
        super().__init__()
        self._shown: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        """Implement `logging.Filter`."""
        if record.levelno != logging.WARNING or len(self._shown) >= MAX_REMEMBERED:
            return True
        text = record.getMessage()
        new = text not in self._shown
        self._shown.add(text)
        return new


class _VisibleFormatter(logging.Formatter):
    """For a terminal: without the control characters of a project's or a tool's text."""

    def format(self, record: logging.LogRecord) -> str:
        return visible(super().format(record))


def _adapter(name: str | None) -> tuple[str, ...] | None:
    try:
        return check_adapters((name,), "--adapter", installed()) if name else None
    except ConfigurationError as error:
        raise CommandLineError(error.problem, error.remedy) from None


def with_options(options: Sequence[click.Parameter]) -> Callable[[Command], Command]:
    """Give a command `options`, as one keyword argument each."""

    def give(command: Command) -> Command:
        command.__dict__.setdefault("__click_params__", []).extend(reversed(options))
        return command

    return give


bridge_options = with_options(OPTIONS)


def command_with(values: Mapping[str, Any], *words: str) -> str:
    """The command `words` of the bridge for the project and tool that the options `values` name, as it is typed."""
    names = ("root", "adapter", "config", "python", "cluster")
    named = (word for name in names if values.get(name) for word in (f"--{name}", values[name]))
    return shlex.join(["msp-bridge", *words, *named])


def typed_in(root: Path, command: str) -> str:
    """The command for the project at `root`, as it is typed in the current directory."""
    return command if root.samefile(".") else f"cd {shlex.quote(str(root))} && {command}"


def outside(root: Path, file: str | None, option: str) -> Path | None:
    """The file that the user named for us to write to; raises CommandLineError when it lies in the project.

    There each line would look like a change of the project, to us and to whatever else watches it.
    """
    if file is None:
        return None
    path = Path(os.path.abspath(file))
    if path.resolve().is_relative_to(root.resolve()):
        elsewhere = Path.home() / path.name
        raise CommandLineError(
            f"{option}: {path} lies in the project, which is never written to",
            f"name a file outside, such as {elsewhere}",
        )
    return path


def _file_handler(file: Path, level: str) -> logging.Handler:
    with writing_to(file, "--log-file"):
        os.close(open_private(file))
        handler = logging.FileHandler(file, encoding="utf-8")
    handler.setLevel(level)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    return handler
