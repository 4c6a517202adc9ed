"""A report validates against the published schema, and has what the results have; what is no report is named."""

import hashlib
import json
from pathlib import Path
from typing import Any

import jsonschema
import orjson
import pytest
from support.viewers import SCHEMA, SCHEMA_FILE, killed, reported

from msp_bridge.model import Location, Mutant, Position, Result, Status
from msp_bridge.reports.standard import invalid, report

PUBLISHED = "404575e9264686dbf85c399f6531fdb489bebc3146e7e1d793b8083bc6a041ae"  # of the file in the npm package


def mutant(path: str = "src/shop.py", line: int = 1, replacement: str = "-") -> Mutant:
    return Mutant(path, "operator: + to -", Location(Position(line, 5), Position(line, 6)), replacement)


def valid_report(root: Path, *results: Result) -> dict[str, Any]:
    made = json.loads(json.dumps(report(root, results)))
    jsonschema.validate(made, SCHEMA)
    return made


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/shop.py").write_bytes(b"a = b + c\r\n")
    return tmp_path


def test_a_report_of_nothing_is_valid(project: Path) -> None:
    assert valid_report(project)["files"] == {}


@pytest.mark.parametrize("status", Status)
def test_every_status_is_valid(project: Path, status: Status) -> None:
    made = valid_report(project, Result(mutant(), status))
    assert made["files"]["src/shop.py"]["mutants"][0]["status"] == status.value


def test_a_full_result_keeps_all_fields_and_its_tests_are_listed_under_their_file(project: Path) -> None:
    result = Result(
        mutant(),
        Status.KILLED,
        duration=12.5,
        covered_by=("tests/test_shop.py::test_a", "tests/test_shop.py::test_b[x::y]"),
        killed_by=("tests/test_shop.py::test_a",),
        static=False,
        status_reason="assert 1 == 2",
        tests_completed=1,
    )
    made = valid_report(project, result)
    assert made["files"]["src/shop.py"]["mutants"] == [
        {
            "id": result.mutant.id,
            "mutatorName": "operator: + to -",
            "location": {"start": {"line": 1, "column": 5}, "end": {"line": 1, "column": 6}},
            "replacement": "-",
            "status": "Killed",
            "statusReason": "assert 1 == 2",
            "static": False,
            "duration": 12.5,
            "coveredBy": ["tests/test_shop.py::test_a", "tests/test_shop.py::test_b[x::y]"],
            "killedBy": ["tests/test_shop.py::test_a"],
            "testsCompleted": 1,
        }
    ]
    names = ("test_a", "test_b[x::y]")
    listed = [{"id": f"tests/test_shop.py::{name}", "name": name} for name in names]
    assert made["testFiles"] == {"tests/test_shop.py": {"tests": listed}}


def test_the_source_is_as_it_stands_in_the_file(project: Path) -> None:
    made = valid_report(project, Result(mutant(), Status.SURVIVED))
    assert made["files"]["src/shop.py"]["source"] == "a = b + c\r\n"
    assert made["files"]["src/shop.py"]["language"] == "python"


def test_a_source_that_is_gone_is_said_to_be_gone(project: Path) -> None:
    made = valid_report(project, Result(mutant("gone.py"), Status.SURVIVED))
    assert "could not be read" in made["files"]["gone.py"]["source"]


def test_mutants_stand_in_the_order_of_their_places(project: Path) -> None:
    results = [Result(mutant(line=line), Status.SURVIVED) for line in (3, 1, 2)]
    made = valid_report(project, *results)
    assert [found["location"]["start"]["line"] for found in made["files"]["src/shop.py"]["mutants"]] == [1, 2, 3]


def test_a_name_that_is_not_utf_8_makes_a_report_that_every_parser_reads(tmp_path: Path) -> None:
    root = tmp_path / "caf\udce9"
    root.mkdir()
    made = report(root, [Result(mutant("\udcff.py"), Status.SURVIVED, status_reason="\ud800")])
    parsed = orjson.loads(orjson.dumps(made))
    assert parsed["projectRoot"].endswith("caf\\udce9")
    assert list(parsed["files"]) == ["\\udcff.py"]
    assert parsed["files"]["\\udcff.py"]["mutants"][0]["statusReason"] == "\\ud800"


def test_the_schema_is_the_published_one() -> None:
    assert hashlib.sha256(SCHEMA_FILE.read_bytes()).hexdigest() == PUBLISHED


def test_our_own_reports_are_valid(tmp_path: Path) -> None:
    report = reported(tmp_path, killed(killed_by=("t.py::test_a",)), shard={"number": 1})
    assert invalid([report]) == [None]


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ([], "the report must be object"),
        ({"files": {}}, "the report must contain ['schemaVersion', 'thresholds'] properties"),
    ],
)
def test_what_is_no_report_at_all_is_named(value: Any, says: str) -> None:
    assert invalid([value]) == [says]


def test_the_place_of_a_fault_is_named(tmp_path: Path) -> None:
    report = reported(tmp_path, killed())
    odd = json.loads(json.dumps(report).replace('"Killed"', '"Dead"'))
    good, bad = invalid([report, odd])
    assert good is None
    assert bad is not None
    assert bad.startswith("files.shop.py.mutants[0].status must be one of ['Killed', ")
