"""Installation: how Stryker.NET is called on this machine: by the project's setting, as a local or as a global tool."""

from __future__ import annotations

import os
import shlex
import shutil
from pathlib import Path
from typing import Any, Self

from attrs import frozen

from msp_bridge.adapter import ConfigurationError, Project, ToolError

from .assumptions import GLOBAL_TOOLS, INSTALL, PACKAGE

SETTINGS = {"command", "serve"}


@frozen
class Installation:
    """The words before the options, and a stamp that changes when the tool itself does."""

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
                raise ToolError(f"{manifest} names {PACKAGE}, but there is no `dotnet` on PATH: install the .NET SDK")
            return cls(("dotnet", "stryker"), _stamp(manifest))
        program = global_tool()
        if program is None:
            raise ToolError(f"Stryker.NET is not installed: {INSTALL}")
        return cls((str(program),), _stamp(program))

    @property
    def has_options(self) -> bool:
        """Whether the words are more than a program's and a command's names."""
        return any(word.startswith("-") for word in self.command)

    def __str__(self) -> str:
        return shlex.join(self.command)


def global_tool() -> Path | None:
    """The program that `dotnet tool install -g` put on PATH or into its usual place."""
    found = shutil.which(PACKAGE) or shutil.which(PACKAGE, path=str(Path.home() / GLOBAL_TOOLS))
    return None if found is None else Path(os.path.abspath(found))


def check_settings(settings: Any) -> None:
    """Raises `ConfigurationError` for settings that there are not."""
    unknown = sorted(set(settings) - SETTINGS)
    if unknown:
        raise ConfigurationError(f"stryker-net has no setting {unknown[0]!r}: there are `command` and `serve`")
    _configured(settings)
    if not isinstance(settings.get("serve", True), bool):
        raise ConfigurationError("`serve` of stryker-net must be true or false: correct it")


def _configured(settings: Any) -> tuple[str, ...]:
    command = settings.get("command", [])
    words = shlex.split(command) if isinstance(command, str) else command
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise ConfigurationError("`command` of stryker-net must be a string or a list of strings: correct it")
    return tuple(words)


def _stamp(file: Path) -> str:
    try:
        status = file.stat()
    except OSError:
        return ""
    return f"{file}:{status.st_mtime_ns}:{status.st_size}"
