"""Settings: what the user set for one tool: which files are its own, and its commands with their placeholders."""

import glob
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Self

from attrs import frozen

from msp_bridge import reading
from msp_bridge.adapter import ConfigurationError, Status
from msp_bridge.errors import suggestion

PLACEHOLDER = re.compile(r"\{([a-z]+)(?::([^{}]*))?\}")
LISTS = ("files", "ranges", "ids")
SINGLE = ("report", "directory", "jobs", "root", "project", "python")
MISSPELT = re.compile(rf"\{{\s*(?:\{{\s*)?({'|'.join(LISTS + SINGLE)})\s*(?:\}}\s*)?\}}", re.IGNORECASE)
RELATIVE = "write a path relative to the project's root, without .."
KEYS = ("files", "discover", "test", "baseline", "report", "writes", "environments", "missing")
PRIVATE = ("{report}", "{directory}")
IN_REPORT = ("report", "directory", "root", "project")  # placeholders of the key `report`


@frozen
class CommandTemplate:
    """Groups of words. A group with a list, such as `{files}`, is repeated for each item; `{files:,}` joins them."""

    groups: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, value: Any, where: str) -> Self:
        """Make it from the list that the user wrote, in which a list is a group; raises `ConfigurationError`."""
        if not isinstance(value, list) or not value:
            raise ConfigurationError(f"{where} is no list of words", 'write it as ["tool", "--report={report}"]')
        groups = []
        for part in value:
            words = part if isinstance(part, list) else [part]
            if not words or not all(isinstance(word, str) and word for word in words):
                raise ConfigurationError(
                    f"{where}: {part!r} is not a word", "write a word, or a list of words that belong together"
                )
            _check(words, where)
            groups.append(tuple(words))
        if PLACEHOLDER.search(re.sub(r"^\{(project|python)\}", "", groups[0][0])):
            raise ConfigurationError(f"{where} begins with {groups[0][0]}", "begin with a program")
        return cls(tuple(groups))

    @property
    def program(self) -> str:
        """The first word."""
        return self.groups[0][0]

    def names(self, placeholder: str) -> bool:
        """Whether `placeholder` stands anywhere in it."""
        return placeholder in {name for group in self.groups for name, _ in _placeholders(group)}

    def words(self, values: Mapping[str, str | Sequence[str]]) -> list[str]:
        """The words with every placeholder replaced by its value: a list for each of `LISTS`."""
        words: list[str] = []
        for group in self.groups:
            repeated = next((name for name, between in _placeholders(group) if name in LISTS and between is None), None)
            for item in values[repeated] if repeated else [""]:
                words += [_filled(word, {**values, repeated: item} if repeated else values) for word in group]
        return words


def filled(text: str, values: Mapping[str, str]) -> str:
    """`text` with each `{name}` that has a value replaced."""
    return PLACEHOLDER.sub(lambda match: values.get(match[1], match[0]), text)


def _filled(word: str, values: Mapping[str, str | Sequence[str]]) -> str:
    def value(match: re.Match[str]) -> str:
        found = values[match[1]]
        return found if isinstance(found, str) else (match[2] or "").join(found)

    return PLACEHOLDER.sub(value, word)


def _placeholders(words: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    return ((match[1], match[2]) for word in words for match in PLACEHOLDER.finditer(word))


def _check(words: Sequence[str], where: str) -> None:
    for name, separator in _placeholders(words):
        if name not in LISTS + SINGLE:
            known = ", ".join(f"{{{known}}}" for known in LISTS + SINGLE)
            raise ConfigurationError(f"{where}: there is no placeholder {{{name}}}", f"choose from {known}")
        if name in SINGLE and separator is not None:
            raise ConfigurationError(f"{where}: {{{name}}} is one value, which nothing joins", f"write {{{name}}}")
    if len({name for name, separator in _placeholders(words) if name in LISTS and separator is None}) > 1:
        raise ConfigurationError(f"{where}: {' '.join(words)} can't be repeated for two lists", "use one of them")
    for word in words:
        for match in MISSPELT.finditer(word):
            if not PLACEHOLDER.fullmatch(match[0]) or word[: match.start()].endswith("{"):
                raise ConfigurationError(f"{where}: {match[0]} is no placeholder", f"write {{{match[1].lower()}}}")


@frozen
class Tool:
    """One sub-table of the adapter's settings. Globs are relative to the project's root, with `/`."""

    name: str  # as messages say it: generic.infection
    files: tuple[str, ...]  # globs of the files that it mutates
    discover: CommandTemplate
    test: CommandTemplate
    report: str = "{report}"  # a glob, with placeholders: where its report appears
    writes: bool = True  # into the project: it runs in a private copy
    environments: bool = False  # the copy has node_modules and virtual environments, too
    missing: Status = Status.IGNORED  # of a mutant that is known and that the report of a test lacks
    baseline: CommandTemplate | None = None  # runs the tests without a mutant

    @classmethod
    def of(cls, name: str, table: Any) -> Self:
        """Raises `ConfigurationError` for a key that is unknown, missing or wrong."""
        if not isinstance(table, dict):
            raise ConfigurationError(
                f"{name} is not the table of a tool", f"write [{name}] with the keys files, discover and test"
            )
        for key in table:
            if key not in KEYS:
                raise ConfigurationError(f"{name}: unknown key {key!r}", suggestion(key, KEYS))
        tool = cls(
            name,
            _globs(table, name),
            _command(table, "discover", name),
            _command(table, "test", name),
            _report(table, name),
            _flag(table, "writes", True, name, "say whether the tool writes into the project"),
            _flag(table, "environments", False, name, "say whether the copy shall have node_modules and .venv"),
            _missing(table, name),
            _command(table, "baseline", name) if "baseline" in table else None,
        )
        tool._check()
        return tool

    def _check(self) -> None:
        if self.baseline is not None and not self.writes:
            raise ConfigurationError(
                f"{self.name}: baseline decides how a private copy is isolated, and there is none",
                "remove it, or `writes = false`",
            )
        for placeholder in ("report", "directory", *LISTS):
            if self.baseline is not None and self.baseline.names(placeholder):
                raise ConfigurationError(
                    f"{self.name}: baseline runs all tests without a mutant", f"remove {{{placeholder}}} from it"
                )
        for placeholder in ("ranges", "ids"):
            if self.discover.names(placeholder):
                raise ConfigurationError(
                    f"{self.name}: discover is about whole files", f"replace {{{placeholder}}} by {{files}}"
                )
        private = any(f"{{{name}}}" in self.report for name in ("report", "directory"))
        if not private and not self.writes:
            raise ConfigurationError(
                f"{self.name}: a report in the project, {self.report!r}, is written into it", "remove `writes = false`"
            )
        for key, command in (("discover", self.discover), ("test", self.test)):
            if private and not command.names("report") and not command.names("directory"):
                raise ConfigurationError(
                    f"{self.name}: {key} does not say where the report goes",
                    "put {report} in it, or set `report` to the place in the project where the tool writes it",
                )

    @property
    def commands(self) -> tuple[CommandTemplate, ...]:
        """All that the user has set."""
        return (self.discover, self.test, *([] if self.baseline is None else [self.baseline]))

    def claims(self, path: str) -> bool:
        """Whether `path` is one of its files; looks at no disk."""
        return any(reading.matches(path, pattern) for pattern in self.files)

    def listed(self, root: Path) -> list[str]:
        """Its files below `root`, sorted."""
        found = {path for pattern in self.files for path in glob.glob(pattern, root_dir=root, recursive=True)}
        return sorted(
            path.as_posix() for path in map(PurePosixPath, found) if self.claims(str(path)) and (root / path).is_file()
        )


def tools_of(settings: Mapping[str, Any]) -> tuple[Tool, ...]:
    """The tools of the adapter's table, in its order; raises `ConfigurationError`."""
    return tuple(Tool.of(f"generic.{name}", table) for name, table in settings.items())


def _globs(table: Mapping[str, Any], name: str) -> tuple[str, ...]:
    globs = table.get("files")
    if not isinstance(globs, list) or not globs or not all(isinstance(pattern, str) and pattern for pattern in globs):
        raise ConfigurationError(
            f"{name}: files is missing or no list of globs", 'set it to what the tool mutates, such as ["src/**/*.php"]'
        )
    for pattern in globs:
        if PurePosixPath(pattern).is_absolute() or ".." in PurePosixPath(pattern).parts:
            raise ConfigurationError(f"{name}: {pattern!r} in files leads out of the project", RELATIVE)
    return tuple(str(PurePosixPath(pattern)) for pattern in globs)


def _command(table: Mapping[str, Any], key: str, name: str) -> CommandTemplate:
    if key not in table:
        what = {"discover": "lists the mutants without testing them", "test": "tests them"}[key]
        raise ConfigurationError(f"{name}: {key} is missing", f"set it to the command that {what}, as a list of words")
    return CommandTemplate.of(table[key], f"{name}: {key}")


def _report(table: Mapping[str, Any], name: str) -> str:
    report = table.get("report", "{report}")
    if not isinstance(report, str) or not report:
        raise ConfigurationError(f"{name}: report is no path or glob", 'write it as report = "target/*/report.json"')
    if not report.startswith(PRIVATE) and (PurePosixPath(report).is_absolute() or ".." in PurePosixPath(report).parts):
        raise ConfigurationError(f"{name}: {report!r} in report leads out of the project", RELATIVE)
    for match in re.finditer(r"\{(\w*)\}", report):
        if match[1] not in IN_REPORT:
            known = ", ".join(f"{{{known}}}" for known in IN_REPORT)
            raise ConfigurationError(f"{name}: {match[0]} in report has no value", f"choose from {known}")
    return report


def _flag(table: Mapping[str, Any], key: str, default: bool, name: str, remedy: str) -> bool:
    value = table.get(key, default)
    if not isinstance(value, bool):
        raise ConfigurationError(f"{name}: {key} is neither true nor false", remedy)
    return value


def _missing(table: Mapping[str, Any], name: str) -> Status:
    value = table.get("missing", Status.IGNORED.value)
    known = {status.value: status for status in (Status.IGNORED, Status.NO_COVERAGE)}
    if not isinstance(value, str) or value not in known:
        raise ConfigurationError(f"{name}: missing is {value!r}", f"choose from {', '.join(known)}")
    return known[value]
