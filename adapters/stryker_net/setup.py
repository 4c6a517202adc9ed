"""Setup: how Stryker.NET is configured and called: the bridge's own settings, its configuration, its installation."""

import json
import os
import re
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from attrs import frozen

from msp_bridge import reading
from msp_bridge.adapter import ConfigurationError, MachineCommand, Project, ShellCommand, ToolError

VERIFIED = "5.0 and 5.1"  # the versions that the tests were run with
PACKAGE = "dotnet-stryker"  # the tool package, the name of the global tool's program, and the key in a tool manifest
GLOBAL_TOOLS = Path(".dotnet/tools")  # below the home directory
INSTALL = MachineCommand(f"dotnet tool install -g {PACKAGE}")
INSTALL_LOCAL = ShellCommand(f"dotnet tool install {PACKAGE}")  # where there is a tool manifest
RESTORE = ShellCommand("dotnet tool restore")
CONFIG_NAMES = ("stryker-config.json", "stryker-config.yml", "stryker-config.yaml")  # [Stryker.CLI/ConfigBuilder.cs]
CONFIG_KEY = "stryker-config"  # the only key at the top [Stryker.CLI/FileBasedInput.cs]
UNWANTED_KEYS = ("since", "baseline")  # they ask for version control, which a private copy doesn't have, or the network
DEFAULT_EXTRA_S = 5.0  # `additional-timeout`
SETTINGS = ("command", "engine")
ENGINES = ("auto", "tool")
COMMENTS = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)  # which Stryker.NET's JSON may have
RUNNER = re.compile(r"\btest-runner[\"']?[\s:=]+[\"']?mtp\b", re.IGNORECASE)  # in JSON, in YAML, and on a command line
EXTRA = re.compile(r"\badditional-timeout[\"']?[\s:=]+[\"']?(\d+)", re.IGNORECASE)  # ms
RANGE = re.compile(r"\{\d+\.\.\d+\}")  # behind a pattern of `mutate`


@frozen
class StrykerNetConfiguration:
    """A stryker-config file."""

    file: Path
    text: str
    table: Mapping[str, Any] | None  # the object below `stryker-config`; None: YAML, of which only the text is known

    @classmethod
    def read(cls, file: Path) -> Self:
        """Raises `ConfigurationError`, also for YAML that has what would have to be left out."""
        try:
            text = reading.text(file, "utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"{file} can't be read: {error}", "correct it") from error
        if file.suffix != ".json":
            for key in UNWANTED_KEYS:
                if re.search(rf"^\s+[\"']?{key}[\"']?\s*:", text, re.MULTILINE):
                    problem = f"{file} sets {key!r}, which can only be left out of JSON"
                    raise ConfigurationError(problem, "write it as stryker-config.json")
            return cls(file, text, None)
        try:
            table = json.loads(COMMENTS.sub(lambda found: found[1] or " ", text))[CONFIG_KEY]
            if not isinstance(table, dict):
                raise TypeError(f"{CONFIG_KEY!r} is no object")
        except (ValueError, KeyError, TypeError) as error:
            raise ConfigurationError(f"{file} is no configuration of Stryker.NET: {error}", "correct it") from error
        return cls(file, text, table)

    def for_copy(self) -> str | None:
        """The text of a configuration without what doesn't work in a copy; None when it works as it is."""
        if self.table is None or not any(key in self.table for key in UNWANTED_KEYS):
            return None
        kept = {key: value for key, value in self.table.items() if key not in UNWANTED_KEYS}
        return json.dumps({CONFIG_KEY: kept}, indent=2)

    @property
    def uses_platform(self) -> bool:
        """Whether it sets `test-runner` to Microsoft.Testing.Platform."""
        return RUNNER.search(self.text) is not None

    @property
    def extra_s(self) -> float:
        """`additional-timeout`, in seconds."""
        found = EXTRA.search(self.text)
        return int(found[1]) / 1000 if found else DEFAULT_EXTRA_S

    @property
    def threshold(self) -> float | None:
        """`thresholds.break`; that of YAML is unknown."""
        thresholds = (self.table or {}).get("thresholds")
        value = thresholds.get("break") if isinstance(thresholds, dict) else None
        return value if isinstance(value, int | float) and not isinstance(value, bool) else None

    @property
    def takes_ranges(self) -> bool:
        """Whether `mutate` may take parts of files."""
        return RANGE.search(self.text) is not None

    @property
    def excluded(self) -> tuple[str, ...]:
        """The patterns of `mutate` that leave files out; those of YAML are unknown."""
        patterns = (self.table or {}).get("mutate")
        listed = patterns if isinstance(patterns, list) else []
        return tuple(pattern for pattern in listed if isinstance(pattern, str) and pattern.startswith("!"))


def could_be_ours(file: Path) -> bool:
    """Whether Stryker.NET could be configured with `file`."""
    try:
        if file.suffix == ".json":
            return isinstance(StrykerNetConfiguration.read(file).table, dict)
        return file.suffix in (".yml", ".yaml") and CONFIG_KEY in reading.text(file, "utf-8-sig")
    except (OSError, UnicodeDecodeError, ConfigurationError):
        return False


def platform_line(configuration: StrykerNetConfiguration | None) -> str:
    """The setting with which the tool runs tests on Microsoft.Testing.Platform, and its file."""
    if configuration is None:
        return f'write `{{"{CONFIG_KEY}": {{"test-runner": "mtp"}}}}` into {CONFIG_NAMES[0]}'
    line = "test-runner: mtp" if configuration.table is None else '"test-runner": "mtp"'
    return f"add `{line}` to {configuration.file.name}"


@frozen
class StrykerNetInstallation:
    """How Stryker.NET is called: the words before the options, and a stamp that changes when the tool itself does."""

    command: tuple[str, ...]
    stamp: str

    @classmethod
    def find(cls, project: Project, manifest: Path | None) -> Self:
        """`manifest` is the tool manifest that names the tool. Raises `ToolError` and `ConfigurationError`."""
        configured = _configured(project.settings)
        if configured:
            return cls(configured, "")  # what it is a stamp of is not for us to guess
        if manifest is not None:
            if shutil.which("dotnet") is None:
                problem = f"{manifest} names {PACKAGE}, but there is no `dotnet` on PATH"
                raise ToolError(problem, "install the .NET SDK")
            return cls(("dotnet", "stryker"), _stamp(manifest))
        program = global_tool()
        if program is None:
            raise ToolError("Stryker.NET is not installed", INSTALL)
        return cls((str(program),), _stamp(program))

    @property
    def uses_platform(self) -> bool:
        """Whether the command has the option for Microsoft.Testing.Platform."""
        return RUNNER.search(shlex.join(self.command)) is not None

    def __str__(self) -> str:
        return shlex.join(self.command)


def global_tool() -> Path | None:
    """The program that `dotnet tool install -g` put on PATH or into its usual place."""
    found = shutil.which(PACKAGE) or shutil.which(PACKAGE, path=str(Path.home() / GLOBAL_TOOLS))
    return None if found is None else Path(os.path.abspath(found))


def check_settings(project: Project) -> None:
    """Raises `ConfigurationError` for a setting that there isn't, or a value that it can't have."""
    project.check_settings("stryker-net", SETTINGS)
    _configured(project.settings)
    engine = project.settings.get("engine", "auto")
    if engine not in ENGINES:
        raise ConfigurationError(f"`engine` of stryker-net is {engine!r}", 'set it to "auto" or "tool"')


def _configured(settings: Mapping[str, Any]) -> tuple[str, ...]:
    command = settings.get("command", [])
    words = shlex.split(command) if isinstance(command, str) else command
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise ConfigurationError("`command` of stryker-net is no command", "make it a string or a list of strings")
    return tuple(words)


def _stamp(file: Path) -> str:
    try:
        status = file.stat()
    except OSError:
        return ""
    return f"{file}:{status.st_mtime_ns}:{status.st_size}"
