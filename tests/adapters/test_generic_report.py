"""Reading reports, as different tools write them. All texts here are constructed, some after a tool's source."""

import json
from pathlib import Path
from typing import Any

import pytest
from msp_bridge.adapters.generic.report import Paths, read_report
from support.files import written

from msp_bridge.adapter import Location, Mutant, Position, Result, Status

SOURCE = "a = b + c\nd = '😀' + e\n"


def mutant(line: int = 1, start: int = 7, end: int = 8, **changes: Any) -> dict[str, Any]:
    location = {"start": {"line": line, "column": start}, "end": {"line": line, "column": end}}
    fields = {"id": "7", "mutatorName": "Plus", "replacement": "-", "location": location, "status": "Killed"}
    return {name: value for name, value in (fields | changes).items() if value is not None}


def report(*mutants: dict[str, Any], key: str = "src/a.php", **changes: Any) -> bytes:
    files = {key: {"language": "php", "source": SOURCE, "mutants": list(mutants)}}
    return json.dumps({"schemaVersion": "2", "thresholds": {"high": 80, "low": 60}, "files": files} | changes).encode()


def read(data: bytes) -> list[Result]:
    return list(read_report(data, lambda key, source: key).values())


def only(*mutants: dict[str, Any]) -> Result:
    (result,) = read(report(*mutants))
    return result


def test_every_field_is_taken_and_tests_have_their_names() -> None:
    details = {"coveredBy": ["1", "2"], "killedBy": ["1"], "static": False, "duration": 12, "testsCompleted": 3}
    tests = {"tests/A.php": {"tests": [{"id": "1", "name": "A::test"}]}}
    (result,) = read(report(mutant(**details, statusReason="no", description="+ to -"), testFiles=tests))
    place = Location(Position(1, 7), Position(1, 8))
    assert result == Result(
        Mutant("src/a.php", "Plus", place, "-"), Status.KILLED, 12.0, ("A::test", "2"), ("A::test",), False, "no", 3
    )
    assert result.mutant.description == "+ to -"


@pytest.mark.parametrize("status", list(Status))
def test_every_status_of_the_schema_is_known(status: Status) -> None:
    assert only(mutant(status=status.value)).status is status


@pytest.mark.parametrize("version", ["1", "1.0", "2", "2.0.1", 2, None])
def test_both_versions_are_read(version: object) -> None:
    assert len(read(report(mutant(), schemaVersion=version) if version else b'{"files": {}}')) == bool(version)


def test_without_a_replacement_the_words_of_the_tool_stand_there() -> None:
    described = only(mutant(replacement=None, description="removed call to x")).mutant
    assert (described.replacement, described.mutator) == ("removed call to x", "Plus: removed call to x")
    assert only(mutant(replacement=None)).mutant.replacement == "Plus"
    assert only(mutant(replacement="", description="removed")).mutant.replacement == ""


def test_what_a_report_does_not_distinguish_is_one_mutant_detected_if_all_are() -> None:
    assert only(mutant(status="Killed"), mutant(status="Survived"), mutant(status="Timeout")).status is Status.SURVIVED
    assert only(mutant(status="Ignored"), mutant(status="Killed")).status is Status.KILLED
    assert only(mutant(status="Survived"), mutant(status="Pending")).status is Status.PENDING


@pytest.mark.parametrize(
    ("line", "start", "end", "expected"),
    [
        (2, 5, 9, ((2, 5), (2, 9))),
        (1, 0, 0, ((1, 1), (1, 1))),
        (1, 4, 99, ((1, 4), (1, 10))),
        (2, 14, 99, ((2, 13), (2, 13))),
        (9, 1, 2, ((3, 1), (3, 1))),
        (1, 5, 2, ((1, 5), (1, 5))),
    ],
)
def test_a_place_outside_the_file_is_drawn_into_it(line: int, start: int, end: int, expected: Any) -> None:
    location = only(mutant(line, start, end)).mutant.location
    assert ((location.start.line, location.start.column), (location.end.line, location.end.column)) == expected


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "Expecting value"),
        (b"\xff", "codec can't decode"),
        (b"[]", "the report is no object"),
        (b"{}", "files is no object"),
        (b"<html></html>", "a page of HTML without a report in it"),
        (report(schemaVersion="3"), "its schemaVersion is 3, not 1 or 2"),
        (report(mutant(status="Dead")), "a mutant of src/a.php has the unknown status 'Dead'"),
        (report(mutant(mutatorName=None)), "a mutant of src/a.php lacks 'mutatorName'"),
        (report(mutant(location={"start": {}})), "a mutant of src/a.php lacks 'line'"),
        (b'{"files": {"a": {"mutants": {}}}}', "the mutants of a are no list"),
    ],
    ids=str,
)
def test_what_is_no_report_is_an_error(data: bytes, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        read(data)


def test_a_report_within_a_page_is_found() -> None:
    # constructed after infection/infection, src/Logger/Html/HtmlFileLogger.php
    before = b"<!DOCTYPE html>\n<html><script>const app = 1;\napp.item(0).report = "
    page = before + report(mutant(replacement="report = {")) + b"\n;\n</script></html>"
    assert [result.mutant.replacement for result in read(page)] == ["report = {"]


@pytest.mark.parametrize(
    ("key", "root", "path"),
    [
        ("src/a.php", None, "src/a.php"),
        ("./src/a.php", None, "src/a.php"),
        ("src\\a.php", None, "src/a.php"),
        ("{copy}/src/a.php", None, "src/a.php"),
        ("{root}/src/a.php", None, "src/a.php"),
        ("src/a.php", "{copy}", "src/a.php"),
        ("{copy}/src/a.php", "/elsewhere", "src/a.php"),
        ("a.php", None, "src/a.php"),  # Infection: relative to what all files have in common
        ("b.php", None, "lib/b.php"),  # two files end so: the one with this text
        ("org.example/a.php", None, "src/a.php"),  # PIT's plugin: a package, and the name of the file
        ("vendor/c.php", None, None),
        ("/elsewhere/a.php", None, None),
    ],
)
def test_a_file_is_found_however_the_tool_writes_its_path(
    tmp_path: Path, key: str, root: str | None, path: str | None
) -> None:
    copy, home = tmp_path / "copy", tmp_path / "root"
    files = {"src/a.php": SOURCE, "src/b.php": "other", "lib/b.php": SOURCE.replace("\n", "\r\n")}
    written(copy, files)
    filled = {name: value.format(copy=copy, root=home) for name, value in {"key": key, "root": root or ""}.items()}
    changes = {"projectRoot": filled["root"]} if root else {}
    found = read_report(report(mutant(), key=filled["key"], **changes), Paths(copy, home, sorted(files)).locate)
    assert [mutant.path for mutant in found] == ([path] if path else [])
