"""The standard format of mutation testing reports, version 2: written, read back, and checked by its schema.

The standard HTML viewer and dashboards read it. `mutation-testing-report-schema.json` is the schema of the npm package
`mutation-testing-report-schema` 3.8.4 (Apache-2.0), unchanged.
https://github.com/stryker-mutator/mutation-testing-elements/tree/master/packages/report-schema
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import Any, cast

from attrs import frozen

import msp_bridge
from msp_bridge.model import Result
from msp_bridge.reports.results import changed_lines, replacement_of
from msp_bridge.rows import mutant_fields, outcome_fields, reported_mutant, reported_result
from msp_bridge.source import SourceText
from msp_bridge.text import encodable

SCHEMA = "mutation-testing-report-schema.json"
Report = Mapping[str, Any]  # a valid report, as json.loads gives it
THRESHOLDS = {"high": 80, "low": 60}  # the colours of the viewer; StrykerJS's defaults
LANGUAGES = {  # as Prism names them; the others are named by their suffix
    **dict.fromkeys((".py", ".pyi"), "python"),
    **dict.fromkeys((".js", ".cjs", ".mjs"), "javascript"),
    **dict.fromkeys((".ts", ".cts", ".mts"), "typescript"),
    ".cs": "cs",
    ".rs": "rust",
}


def report(root: Path, results: Sequence[Result], config: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The report of `results` on the project at `root`, whose sources are read now; `config` says how it was run."""
    by_path: dict[str, list[Result]] = {}
    for result in sorted(results, key=lambda result: (result.mutant.path, result.mutant.location.start)):
        by_path.setdefault(result.mutant.path, []).append(result)
    made = {
        "schemaVersion": "2",
        "thresholds": THRESHOLDS,
        "projectRoot": str(root),
        "framework": {"name": "msp-bridge", "version": msp_bridge.__version__},
        "files": {path: _file(root / path, of_file) for path, of_file in by_path.items()},
        "testFiles": _test_files(results),
        **({"config": dict(config)} if config else {}),
    }
    return cast("dict[str, Any]", _encodable(made))


def outcome(result: Result) -> dict[str, Any]:
    """Fields of the format that a result adds to its mutant, with the mutant's id."""
    return cast("dict[str, Any]", _encodable({"id": result.mutant.id, **outcome_fields(result)}))


@frozen
class ReportedMutant:
    """One mutant: its result, and what it changes, as far as the report has the source."""

    result: Result
    diff: Sequence[tuple[str, str]]  # pairs of sign and line, as of Diff.lines
    replacement: str  # in one line, as of `replacement_of`

    @property
    def diff_text(self) -> str:
        """The diff, a line each."""
        return "\n".join(f"{sign} {line}" for sign, line in self.diff)


def entries(report: Mapping[str, Any]) -> Iterator[ReportedMutant]:
    """Every mutant of a valid report, file by file."""
    for path, file in report["files"].items():
        source = SourceText(file["source"])
        for fields in file["mutants"]:
            result = reported_result(reported_mutant(path, fields), fields)
            known = source if "replacement" in fields else None
            yield ReportedMutant(result, changed_lines(known, result.mutant), replacement_of(result.mutant, known))


def reported_mutants(report: Report) -> Iterator[Mapping[str, Any]]:
    """The fields of every mutant of a valid report."""
    return (fields for file in report["files"].values() for fields in file["mutants"])


def start_of(fields: Mapping[str, Any]) -> tuple[int, int]:
    """The line and column at which a mutant begins, by its fields: they are sorted by it in a file."""
    start = fields["location"]["start"]
    return start["line"], start["column"]


def invalid(values: list[Any]) -> list[str | None]:
    """The error in each value, or None."""
    import fastjsonschema  # only `merge` validates

    validate = fastjsonschema.compile(json.loads(files(__package__).joinpath(SCHEMA).read_bytes()), use_default=False)
    errors: list[str | None] = []
    for value in values:
        try:
            validate(value)
            errors.append(None)
        except fastjsonschema.JsonSchemaValueException as error:
            errors.append(str(error.message).replace("data", "the report", 1).replace("the report.", "", 1))
    return errors


def _encodable(value: Any) -> Any:
    """Replace lone surrogates, which names that are not UTF-8 have: many JSON parsers refuse them."""
    match value:
        case str():
            return encodable(value)
        case dict():
            return {encodable(key): _encodable(item) for key, item in value.items()}
        case list() | tuple():
            return [_encodable(item) for item in value]
    return value


def _file(file: Path, results: Iterable[Result]) -> dict[str, Any]:
    try:
        source = SourceText.read(file).text
    except (OSError, UnicodeDecodeError) as error:
        source = f"(the source could not be read: {error})"
    return {
        "language": LANGUAGES.get(file.suffix, file.suffix.removeprefix(".")),
        "source": source,
        "mutants": [mutant_fields(result.mutant) | outcome_fields(result) for result in results],
    }


def _test_files(results: Iterable[Result]) -> dict[str, Any]:
    """The tests that the results name, by the file that pytest's node ids begin with."""
    names = {name for result in results for name in (*(result.covered_by or ()), *(result.killed_by or ()))}
    files: dict[str, Any] = {}
    for name in sorted(names):
        file, separator, test = name.partition("::")
        path = PurePosixPath(file).as_posix() if separator else ""
        files.setdefault(path, {"tests": []})["tests"].append({"id": name, "name": test or name})
    return files
