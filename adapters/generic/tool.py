"""Tool: what the user set for one tool, and which files are its own."""

from __future__ import annotations

import difflib
import glob
import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, Self

from attrs import frozen

from msp_bridge.adapter import ConfigurationError

from .command import Command

KEYS = ("files", "discover", "test", "report", "writes")
PRIVATE = ("{report}", "{directory}")


@frozen(slots=False)
class Tool:
    """One sub-table of the adapter's settings. Globs are relative to the project's root, with `/`."""

    name: str  # as messages say it: generic.infection
    files: tuple[str, ...]  # globs of the files that it mutates
    discover: Command
    test: Command
    report: str = "{report}"  # a glob, with placeholders: where its report appears
    writes: bool = True  # into the project: it runs in a private copy

    @classmethod
    def of(cls, name: str, table: Any) -> Self:
        """Raises `ConfigurationError` for a key that is unknown, missing or wrong."""
        if not isinstance(table, dict):
            raise ConfigurationError(
                f"{name} must be the table of a tool: write [{name}] with the keys files, discover and test"
            )
        for key in table:
            if key not in KEYS:
                close = difflib.get_close_matches(key, KEYS, 1)
                known = f"did you mean {close[0]!r}?" if close else f"choose from {', '.join(KEYS)}"
                raise ConfigurationError(f"{name}: unknown key {key!r}; {known}")
        tool = cls(
            name,
            _globs(table, name),
            _command(table, "discover", name),
            _command(table, "test", name),
            _report(table, name),
            _writes(table, name),
        )
        tool._check()
        return tool

    def _check(self) -> None:
        if self.discover.names("ranges"):
            raise ConfigurationError(f"{self.name}: discover is about whole files: replace {{ranges}} by {{files}}")
        private = any(f"{{{name}}}" in self.report for name in ("report", "directory"))
        if not private and not self.writes:
            raise ConfigurationError(
                f"{self.name}: a report in the project, {self.report!r}, is written into it: remove `writes = false`"
            )
        for key, command in (("discover", self.discover), ("test", self.test)):
            if private and not command.names("report") and not command.names("directory"):
                raise ConfigurationError(
                    f"{self.name}: {key} must say where the report goes: put {{report}} in it, or set `report` to the "
                    "place in the project where the tool writes it"
                )

    def claims(self, path: str) -> bool:
        """Whether `path` is one of its files; looks at no disk."""
        return self._pattern.fullmatch(path) is not None

    def listed(self, root: Path) -> list[str]:
        """Its files below `root`, sorted."""
        found = {path for pattern in self.files for path in glob.glob(pattern, root_dir=root, recursive=True)}
        return sorted(
            path.as_posix() for path in map(PurePosixPath, found) if self.claims(str(path)) and (root / path).is_file()
        )

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile("|".join(map(_expression, self.files)), re.DOTALL)


def tools_of(settings: Mapping[str, Any]) -> tuple[Tool, ...]:
    """The tools of the adapter's table, in its order; raises `ConfigurationError`."""
    return tuple(Tool.of(f"generic.{name}", table) for name, table in settings.items())


def _expression(pattern: str) -> str:
    """What `glob.glob(pattern, recursive=True)` finds, as a regular expression: no wildcard begins with a dot."""
    parts = pattern.split("/")
    expressions = []
    for at, part in enumerate(parts):
        last = at == len(parts) - 1
        if part == "**":
            expressions.append(r"(?:(?!\.)[^/]+/)*" + (r"(?!\.)[^/]+" if last else ""))
        else:
            dot = "" if part.startswith(".") else r"(?!\.)"
            expressions.append(dot + _part(part) + ("" if last else "/"))
    return "".join(expressions)


def _part(part: str) -> str:
    expression, at = "", 0
    while at < len(part):
        character = part[at]
        end = part.find("]", at + 2)
        if character == "[" and end > 0:
            inner = part[at + 1 : end].replace("\\", r"\\")
            expression += f"[^/{inner[1:]}]" if inner.startswith("!") else f"[{inner}]"
            at = end + 1
            continue
        expression += {"*": "[^/]*", "?": "[^/]"}.get(character) or re.escape(character)
        at += 1
    return expression


def _globs(table: Mapping[str, Any], name: str) -> tuple[str, ...]:
    globs = table.get("files")
    if not isinstance(globs, list) or not globs or not all(isinstance(pattern, str) and pattern for pattern in globs):
        raise ConfigurationError(f'{name}: set files to what the tool mutates, such as files = ["src/**/*.php"]')
    for pattern in globs:
        if PurePosixPath(pattern).is_absolute() or ".." in PurePosixPath(pattern).parts:
            raise ConfigurationError(f"{name}: {pattern!r} in files must be relative to the project's root, without ..")
    return tuple(str(PurePosixPath(pattern)) for pattern in globs)


def _command(table: Mapping[str, Any], key: str, name: str) -> Command:
    if key not in table:
        what = {"discover": "lists the mutants without testing them", "test": "tests them"}[key]
        raise ConfigurationError(f"{name}: set {key} to the command that {what}, as a list of words")
    return Command.of(table[key], f"{name}: {key}")


def _report(table: Mapping[str, Any], name: str) -> str:
    report = table.get("report", "{report}")
    if not isinstance(report, str) or not report:
        raise ConfigurationError(f'{name}: report must be a path or a glob, such as report = "target/*/report.json"')
    if not report.startswith(PRIVATE) and (PurePosixPath(report).is_absolute() or ".." in PurePosixPath(report).parts):
        raise ConfigurationError(f"{name}: {report!r} in report must be relative to the project's root, without ..")
    return report


def _writes(table: Mapping[str, Any], name: str) -> bool:
    writes = table.get("writes", True)
    if not isinstance(writes, bool):
        raise ConfigurationError(f"{name}: writes must be true or false: whether the tool writes into the project")
    return writes
