"""The mutation-testing-report-schema (version 2): the JSON that the standard HTML viewer and dashboards read.

https://github.com/stryker-mutator/mutation-testing-elements/tree/master/packages/report-schema
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import msp_bridge
from msp_bridge.model import Location, Result
from msp_bridge.source import SourceText

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
    return {
        "schemaVersion": "2",
        "thresholds": THRESHOLDS,
        "projectRoot": str(root),
        "framework": {"name": "msp-bridge", "version": msp_bridge.__version__},
        "files": {path: _file(root / path, of_file) for path, of_file in by_path.items()},
        "testFiles": _test_files(results),
        **({"config": dict(config)} if config else {}),
    }


def outcome(result: Result) -> dict[str, Any]:
    """What a result adds to its mutant, in the fields of the format, with the mutant's id."""
    fields = {
        "id": result.mutant.id,
        "status": result.status.value,
        "statusReason": result.status_reason,
        "static": result.static,
        "duration": result.duration,
        "coveredBy": result.covered_by,
        "killedBy": result.killed_by,
        "testsCompleted": result.tests_completed,
    }
    return {
        name: list(value) if isinstance(value, tuple) else value for name, value in fields.items() if value is not None
    }


def _file(file: Path, results: Iterable[Result]) -> dict[str, Any]:
    try:
        source = SourceText.read(file).text
    except (OSError, UnicodeDecodeError) as error:
        source = f"(the source could not be read: {error})"
    return {
        "language": LANGUAGES.get(file.suffix, file.suffix.removeprefix(".")),
        "source": source,
        "mutants": [_mutant(result) for result in results],
    }


def _mutant(result: Result) -> dict[str, Any]:
    mutant = result.mutant
    description = {} if mutant.description is None else {"description": mutant.description}
    return {
        "mutatorName": mutant.mutator,
        "location": _location(mutant.location),
        "replacement": mutant.replacement,
        **description,
        **outcome(result),
    }


def _location(location: Location) -> dict[str, Any]:
    start, end = location.start, location.end
    return {"start": {"line": start.line, "column": start.column}, "end": {"line": end.line, "column": end.column}}


def _test_files(results: Iterable[Result]) -> dict[str, Any]:
    """The tests that the results name, by the file that pytest's node ids begin with."""
    names = {name for result in results for name in (*(result.covered_by or ()), *(result.killed_by or ()))}
    files: dict[str, Any] = {}
    for name in sorted(names):
        file, separator, test = name.partition("::")
        path = PurePosixPath(file).as_posix() if separator else ""
        files.setdefault(path, {"tests": []})["tests"].append({"id": name, "name": test or name})
    return files
