"""No report that people read has a control character of a project in it: a terminal would execute it."""

import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from rich.console import Console

from msp_bridge.cli.outputs import FORMS
from msp_bridge.jsonrpc.messages import dump, parse
from msp_bridge.model import Location, Mutant, Position, Result, Status
from msp_bridge.reports import ci
from msp_bridge.reports.standard import report
from msp_bridge.reports.terminal import TerminalReport
from msp_bridge.text import UNSAFE, one_line

HOSTILE = "\x1b[2J\x07\x00\x9b\u202e\r"
NAME = "a\x1b[2J\n::error::\x9b\u202e\u2028.py"  # a file may have it


@pytest.fixture
def results(tmp_path: Path) -> list[Result]:
    code = f"one = 1  # {HOSTILE}\n"
    (tmp_path / NAME).write_text(code, "utf-8", newline="")
    location = Location(Position(1, 7), Position(1, 8))
    mutants = [
        Mutant(NAME, f"number{HOSTILE}\n", location, f"{status.value}{HOSTILE}", description=HOSTILE)
        for status in Status
    ]
    return [
        Result(mutant, status, 1.5, (f"test{HOSTILE}",), (f"test{HOSTILE}",), False, f"reason{HOSTILE}\nmore", 1)
        for mutant, status in zip(mutants, Status, strict=True)
    ]


def strings(value: Any) -> list[str]:
    match value:
        case str():
            return [value]
        case Mapping():
            return [text for item in value.values() for text in strings(item)]
        case list():
            return [text for item in value for text in strings(item)]
    return []


def of_xml(made: bytes) -> list[str]:
    return [text for one in ET.fromstring(made).iter() for text in (one.text or "", *one.attrib.values())]


def of_sarif(made: bytes) -> list[str]:
    return strings([result["message"] for run in parse(made)["runs"] for result in run["results"]])


def of_gitlab(made: bytes) -> list[str]:
    return [issue["description"] for issue in parse(made)]


def of_page(made: bytes) -> list[str]:
    return [made.decode().partition("<title>")[2].partition("</title>")[0]]


READ: Mapping[str, Callable[[bytes], list[str]]] = {  # what people are shown of a form
    "html": of_page,
    "junit": of_xml,
    "sarif": of_sarif,
    "gitlab": of_gitlab,
    "json": lambda _: [],  # data: the texts are those of the sources, and no line is shown as it is
}


@pytest.mark.parametrize("form", FORMS)
def test_no_form_has_one(form: str, results: list[Result], tmp_path: Path) -> None:
    made = FORMS[form].make(report(tmp_path, results), "")
    assert [byte for byte in made if byte < 0x20 and byte not in b"\t\n"] == []
    assert [text for text in READ[form](made) if UNSAFE.search(text)] == []


def test_the_annotations_and_the_summary_of_github_have_none(results: list[Result], tmp_path: Path) -> None:
    made = report(tmp_path, results)
    for line in [*ci.warnings(made), *ci.summary(made).splitlines()]:
        assert not UNSAFE.search(line)
        assert "\n" not in line
        assert not line.startswith("::error"), "a name makes no command of its own"
    assert parse(dump(made)), "the report itself says what there is"


def test_the_terminal_gets_none(results: list[Result], tmp_path: Path) -> None:
    file = io.StringIO()
    console = Console(file=file, width=10_000, markup=False, highlight=False)
    with TerminalReport(tmp_path, console, len(results)) as shown:
        for result in results:
            shown.show(result)
    shown.summary()
    assert UNSAFE.search(file.getvalue()) is None
    assert one_line(NAME) in file.getvalue()
