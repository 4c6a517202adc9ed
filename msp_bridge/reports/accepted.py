"""Accepted survivors: mutants that the team has looked at and leaves alone, each with its reason, in one file.

The file lies in the project's root and is committed. An entry is known by its code (`MutantContent`), so it stays right
when lines move, and is no longer right when its line changes. Entries are sorted, so that two branches merge. The
status that tests give is kept as it is: a survivor becomes `Ignored` only where results are shown or counted.
"""

from __future__ import annotations

import bisect
import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from attrs import define, evolve, field

from msp_bridge import reading
from msp_bridge.errors import ConfigurationError
from msp_bridge.isolation.left_out import ACCEPTED
from msp_bridge.model import Mutant, Result, Status
from msp_bridge.reports.results import ACCEPTED_REASON, ContentIndex, MutantContent
from msp_bridge.reports.standard import Report, entries
from msp_bridge.source import SourceText
from msp_bridge.text import encodable
from msp_bridge.writing import replace_content

HEAD = "# Survivors that are accepted: `msp-bridge accept` writes them. Each is known by its code, not by its line.\n"
TABLE = re.compile(r"^\[\[accepted\]\][ \t]*$", re.MULTILINE)
KEYS = {"path": str, "before": str, "after": str, "occurrence": int}  # of an entry's content


@define(eq=False)
class AcceptedSurvivors:
    """The entries of the project at `root`, by content, with their reasons."""

    root: Path
    reasons: Mapping[MutantContent, str] = field(factory=dict)
    _indexes: dict[str, ContentIndex | None] = field(factory=dict, init=False)

    @classmethod
    def of(cls, root: Path) -> AcceptedSurvivors:
        """Read the file; there may be none. Raises ConfigurationError."""
        file = root / ACCEPTED
        try:
            return cls(root, dict(_parsed(reading.text(file, "utf-8-sig"), file)))
        except FileNotFoundError:
            return cls(root)
        except (OSError, ValueError) as error:
            raise _unreadable(file, error) from None

    def accept(self, mutants: Iterable[tuple[MutantContent, str]], reason: str) -> list[MutantContent]:
        """Write entries of content and mutator's name, and return the new ones. Raises ConfigurationError."""
        file = self.root / ACCEPTED
        try:
            text = reading.text(file, "utf-8-sig") if file.exists() else HEAD
            head, *blocks = _blocks(text)
            keys = [next(_parsed(block, file))[0] for block in blocks]
            added = []
            for content, mutator in mutants:
                if content in keys:
                    continue
                at = bisect.bisect(keys, content)
                keys.insert(at, content)
                blocks.insert(at, _block(content, mutator, reason))
                added.append(content)
            if added:
                replace_content(file, "\n\n".join(part.rstrip("\n") for part in [head, *blocks]) + "\n")
        except (OSError, ValueError) as error:
            raise _unreadable(file, error) from None
        self.reasons = {**self.reasons, **dict.fromkeys(added, reason)}
        return added

    def judged(self, result: Result) -> Result:
        """`result` as it counts: an accepted survivor is Ignored, with its reason. The source is read once a file."""
        if not self.reasons or not result.status.undetected:
            return result
        content = self.content(result.mutant)
        if content is None or content not in self.reasons:
            return result
        return evolve(result, status=Status.IGNORED, status_reason=ACCEPTED_REASON + self.reasons[content])

    def content(self, mutant: Mutant) -> MutantContent | None:
        """The content of `mutant` in its file as it is now; None when that has no such place."""
        index = self._index(mutant.path)
        return None if index is None else index.of(mutant)

    def judged_report(self, report: Report) -> Report:
        """`report` with each accepted survivor as Ignored."""
        if not self.reasons:
            return report
        return {**report, "files": {path: self._judged_file(path, file) for path, file in report["files"].items()}}

    def gone(self) -> list[MutantContent]:
        """The entries whose code no longer stands in its file."""
        indexes = ((content, self._index(content.path)) for content in self.reasons)
        return [content for content, index in indexes if index is None or not index.has(content)]

    def _judged_file(self, path: str, file: Mapping[str, Any]) -> Mapping[str, Any]:
        index = ContentIndex(SourceText(file["source"]))
        mutants = []
        for entry, fields in zip(entries({"files": {path: file}}), file["mutants"], strict=True):
            content = index.of(entry.result.mutant) if entry.result.status.undetected else None
            reason = None if content is None else self.reasons.get(content)
            accepted = {"status": Status.IGNORED.value, "statusReason": f"{ACCEPTED_REASON}{reason}"}
            mutants.append(fields if reason is None else {**fields, **accepted})
        return {**file, "mutants": mutants}

    def _index(self, path: str) -> ContentIndex | None:
        if path not in self._indexes:
            source = SourceText.read_or_none(self.root / path)
            self._indexes[path] = None if source is None else ContentIndex(source)
        return self._indexes[path]


def _blocks(text: str) -> list[str]:
    """The text before the first entry, and the text of each entry up to the next."""
    starts = [match.start() for match in TABLE.finditer(text)]
    return [text[start:end] for start, end in zip([0, *starts], [*starts, len(text)], strict=True)]


def _parsed(text: str, file: Path) -> Iterator[tuple[MutantContent, str]]:
    """Entries and reasons. Raises ValueError, ConfigurationError for what is no entry."""
    tables = tomllib.loads(text).get("accepted", [])
    if not isinstance(tables, list) or not all(isinstance(entry, dict) for entry in tables):
        raise ConfigurationError(f"{file}: `accepted` must be tables", "write each entry below a line [[accepted]]")
    for number, entry in enumerate(tables, 1):
        values = {"occurrence": 1, **entry}
        wrong = next((key for key, kind in KEYS.items() if type(values.get(key)) is not kind), None)
        if wrong is not None or not str(values.get("reason", "")).strip():
            raise ConfigurationError(
                f"{file}: entry {number} has no `{wrong or 'reason'}`, or a wrong one",
                "correct it, or remove the entry and use `msp-bridge accept`",
            )
        yield MutantContent(**{key: values[key] for key in KEYS}), str(values["reason"])


def _block(content: MutantContent, mutator: str, reason: str) -> str:
    values = {"path": content.path, "mutator": mutator, "before": content.before, "after": content.after}
    occurrence: dict[str, str | int] = {} if content.occurrence == 1 else {"occurrence": content.occurrence}
    lines = ["[[accepted]]"]
    for key, value in {**values, **occurrence, "reason": reason}.items():
        written = value if isinstance(value, int) else json.dumps(encodable(value), ensure_ascii=False)
        lines.append(f"{key} = {written}".replace("\x7f", "\\u007f"))  # TOML's strings are like JSON's
    return "\n".join(lines)


def _unreadable(file: Path, error: Exception) -> ConfigurationError:
    return ConfigurationError(f"can't use {file}: {error}", "correct the file, or remove it")
