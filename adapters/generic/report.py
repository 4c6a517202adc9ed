"""Report: a mutation-testing-report-schema report, read as strictly as its many writers allow, and the files it means.

https://github.com/stryker-mutator/mutation-testing-elements/tree/master/packages/report-schema
"""

import json
import os
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import frozen

from msp_bridge.adapter import Location, Mutant, Position, Result, Status
from msp_bridge.rows import reported_result
from msp_bridge.source import utf16_length

EMBEDDED = re.compile(rb"\breport\s*=\s*(?=\{)")  # Infection writes its report only within a page of HTML
Locate = Callable[[str, str], str | None]  # a file's key and source in the report: its path from the project's root
STATUSES = [status.value for status in Status]
WEIGHT = {Status.PENDING: 3, Status.SURVIVED: 2, Status.NO_COVERAGE: 2, Status.IGNORED: 0}  # of others: 1


def read_report(data: bytes, locate: Locate) -> dict[Mutant, Result]:
    """Every mutant of the report with its result, in the report's order; raises `ValueError` for what is no report.

    `locate` gets a file's key, which is joined to `projectRoot` where there is one; files that it has no path for
    are left out. Mutants that the report doesn't distinguish are one, which is detected only if all of them are.
    """
    report = _object(_parsed(data), "the report")
    version = str(report.get("schemaVersion", "1"))  # Mull writes none
    if version.split(".")[0] not in ("1", "2"):
        raise ValueError(f"its schemaVersion is {version}, not 1 or 2")
    tests = _test_names(report)
    results: dict[Mutant, Result] = {}
    for key, entry in _object(report.get("files"), "files").items():
        file = _object(entry, f"files[{key!r}]")
        source = _text(file, "source") or ""
        path = locate(_rooted(key, report.get("projectRoot")), source)
        if path is not None:
            for result in _results(path, source, file, tests):
                known = results.get(result.mutant)
                if known is None or WEIGHT.get(result.status, 1) > WEIGHT.get(known.status, 1):
                    results[result.mutant] = result
    return results


def _parsed(data: bytes) -> Any:
    text = data.decode("utf-8-sig")
    if text.lstrip().startswith("<"):
        embedded = EMBEDDED.search(data)
        if embedded is None:
            raise ValueError("it is a page of HTML without a report in it")
        return json.JSONDecoder().raw_decode(data[embedded.end() :].decode("utf-8"))[0]
    return json.loads(text)


def _rooted(key: str, root: Any) -> str:
    path = key.replace("\\", "/")
    absolute = path.startswith("/") or re.match("[A-Za-z]:/", path)
    return path if absolute or not isinstance(root, str) or not root else f"{root.replace(chr(92), '/')}/{path}"


def _results(path: str, source: str, file: Mapping[str, Any], tests: Mapping[str, str]) -> Iterator[Result]:
    entries = file.get("mutants")
    if not isinstance(entries, list):
        raise ValueError(f"the mutants of {path} are no list")
    lines = source.split("\n")
    for entry in entries:
        fields = _object(entry, f"a mutant of {path}")
        try:
            mutant = _mutant(path, lines, fields)
            if fields["status"] not in STATUSES:
                raise ValueError(f"a mutant of {path} has the unknown status {fields['status']!r}")
            yield reported_result(mutant, fields, tests)
        except (KeyError, TypeError) as error:
            raise ValueError(f"a mutant of {path} lacks {error}") from error


def _mutant(path: str, lines: list[str], fields: Mapping[str, Any]) -> Mutant:
    """Where the report lacks the replacement, the description stands there, as in the standard viewer.

    They also join the mutator's name then, for two mutants at one place must not be taken for one.
    """
    mutator, description = str(fields["mutatorName"]), _text(fields, "description")
    replacement = _text(fields, "replacement")
    if replacement is None and description is not None:
        mutator = f"{mutator}: {description}"
    start, end = (_position(lines, fields["location"][side]) for side in ("start", "end"))
    return Mutant(
        path,
        mutator,
        Location(start, max(start, end)),
        replacement if replacement is not None else description or mutator,
        description,
        handle=str(fields.get("id", "")),
    )


def _position(lines: list[str], place: Mapping[str, Any]) -> Position:
    """The place, drawn into the file: some tools count columns from 0, or end a mutant on a line that isn't there."""
    line, column = int(place["line"]), int(place["column"])
    if lines == [""]:  # the report has no source
        return Position(max(line, 1), max(column, 1))
    if line > len(lines):
        line, column = len(lines), utf16_length(lines[-1]) + 1
    line = max(line, 1)
    return Position(line, min(max(column, 1), utf16_length(lines[line - 1]) + 1))


def _test_names(report: Mapping[str, Any]) -> dict[str, str]:
    files = report.get("testFiles") or {}
    entries = [test for file in _object(files, "testFiles").values() for test in file.get("tests", ())]
    return {str(test["id"]): str(test.get("name", test["id"])) for test in entries if "id" in test}


def _text(fields: Mapping[str, Any], name: str) -> str | None:
    value = fields.get(name)
    return value if isinstance(value, str) else None


def _object(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{what} is no object")
    return value


@frozen
class Paths:
    """The files that one tool mutates."""

    ran_in: Path  # the project, or its private copy
    root: Path
    files: Sequence[str]

    def locate(self, key: str, source: str) -> str | None:
        """The file's path from the root; None when it is none of the tool's.

        A key is absolute, relative to the root, or, as Infection writes it, relative to whatever directory the files of
        the report have in common: then the file is the one whose path ends so. PIT's plugin puts a package's name
        before the file's: then only that counts. Where several files fit, it is the one whose text is `source`.
        """
        path = self._relative(key)
        if path is None:
            return None
        if path in self.files and (not source or self._has(path, source)):
            return path
        for end in (path, posixpath.basename(path)):
            fitting = [file for file in self.files if file.endswith(f"/{end}")]
            if len(fitting) > 1 or end != path:
                fitting = [file for file in fitting if self._has(file, source)]
            if len(fitting) == 1:
                return fitting[0]
        return path if path in self.files else None

    def _relative(self, key: str) -> str | None:
        if not os.path.isabs(key):
            return posixpath.normpath(key)
        for base in (self.ran_in, self.root):
            for start in (str(base), os.path.realpath(base)):
                for path in (os.path.normpath(key), os.path.realpath(key)):
                    if path.startswith(start + os.sep):
                        return path[len(start) + 1 :]
        return None

    def _has(self, path: str, source: str) -> bool:
        try:
            text = (self.ran_in / path).read_bytes().decode("utf-8-sig", "replace")
        except OSError:
            return False
        return _plain(text) == _plain(source.removeprefix("\ufeff"))


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n").rstrip("\n")
