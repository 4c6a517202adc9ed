"""JUnit XML: a mutant that the tests notice has passed, one that they miss has failed; any text is possible."""

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from attrs import evolve
from support.viewers import killed, mutant, reported, survived

from msp_bridge.model import Result, Status
from msp_bridge.reports.ci import junit


@pytest.mark.parametrize(
    ("status", "element"),
    [
        (Status.KILLED, None),
        (Status.TIMEOUT, None),
        (Status.SURVIVED, "failure"),
        (Status.NO_COVERAGE, "failure"),
        (Status.RUNTIME_ERROR, "error"),
        (Status.COMPILE_ERROR, "skipped"),
        (Status.IGNORED, "skipped"),
        (Status.PENDING, "skipped"),
    ],
)
def test_each_status_has_its_outcome(tmp_path: Path, status: Status, element: str | None) -> None:
    suites = ET.fromstring(junit(reported(tmp_path, Result(mutant(), status, status_reason="because"))))
    (case,) = suites.iter("testcase")
    assert [child.tag for child in case] == ([] if element is None else [element])
    if element is not None:
        assert case[0].get("type") == status.value
        assert "because" in (case[0].text or "")


def test_a_file_is_a_suite_and_everything_is_counted(tmp_path: Path) -> None:
    error = Result(mutant("b.py"), Status.RUNTIME_ERROR)
    results = (killed("a.py", duration=1500.0), survived("a.py", 1, "*", duration=20.0), error)
    suites = ET.fromstring(junit(reported(tmp_path, *results)))
    counts = {"tests": "3", "failures": "1", "errors": "1", "time": "1.520"}
    assert {name: suites.get(name) for name in counts} == counts
    assert [(suite.get("name"), suite.get("tests"), suite.get("failures")) for suite in suites] == [
        ("a.py", "2", "1"),
        ("b.py", "1", "0"),
    ]


def test_a_case_says_where_and_shows_the_diff(tmp_path: Path) -> None:
    (case,) = ET.fromstring(junit(reported(tmp_path, survived()))).iter("testcase")
    assert dict(case.items()) == {
        "classname": "shop.py",
        "name": "1:7 plus -> -",
        "time": "0.000",
    }
    assert case[0].text == "- a = b + c\n+ a = b - c"


def test_a_case_that_deletes_says_what(tmp_path: Path) -> None:
    deletes = evolve(mutant(), replacement="")
    (case,) = ET.fromstring(junit(reported(tmp_path, Result(deletes, Status.SURVIVED)))).iter("testcase")
    assert case.get("name") == "1:7 plus -> (deletes +)"


def test_a_document_has_only_what_the_schema_of_jenkins_allows(tmp_path: Path) -> None:
    """`junit-10.xsd` of its xUnit plugin: the attributes that each element may have, and those that it must have."""
    suite_must = {"name", "tests", "failures", "errors"}
    allowed = {
        "testsuites": (set(), {"name", "time", "tests", "failures", "errors"}),
        "testsuite": (suite_must, suite_must | {"time", "skipped", "file", "package", "id", "url"}),
        "testcase": ({"name"}, {"name", "time", "classname", "group"}),
        **dict.fromkeys(("failure", "error", "skipped"), (set(), {"type", "message"})),
    }
    results = [Result(mutant(line=line), status) for line, status in enumerate(Status, 1)]
    for element in ET.fromstring(junit(reported(tmp_path, *results))).iter():
        must, may = allowed[element.tag]
        assert must <= element.attrib.keys() <= may, element.tag


def test_what_xml_can_not_hold_is_escaped_or_replaced(tmp_path: Path) -> None:
    reason = "\x00\x1b[31m ]]> & < \ud800 \uffff 🙂"
    report = reported(tmp_path, survived())
    report["files"]["shop.py"]["mutants"][0]["statusReason"] = reason  # as another tool's report may have it
    (case,) = ET.fromstring(junit(report)).iter("testcase")
    assert (case[0].text or "").endswith("\\x00\\x1b[31m ]]> & < \\ud800 \N{REPLACEMENT CHARACTER} 🙂")


def test_a_report_of_nothing_is_a_document(tmp_path: Path) -> None:
    assert ET.fromstring(junit(reported(tmp_path))).get("tests") == "0"


def test_a_report_without_replacements_has_no_diff(tmp_path: Path) -> None:
    report = reported(tmp_path, survived())
    del report["files"]["shop.py"]["mutants"][0]["replacement"]
    (case,) = ET.fromstring(junit(report)).iter("testcase")
    assert not case[0].text
