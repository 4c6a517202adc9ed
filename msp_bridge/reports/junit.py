"""JUnit XML: a test case for each mutant, for the CI servers that read nothing else.

https://github.com/testmoapp/junitxml lists what they understand. The document is valid by the strictest schema, that of
Jenkins' xUnit plugin: `file` belongs to a suite there, and a case has no line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any
from xml.etree import ElementTree as ET

from msp_bridge.model import Result, Status
from msp_bridge.reports.standard import Entry, entries

IMPOSSIBLE = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # in XML 1.0, also escaped
OUTCOMES = {  # element, and its message
    Status.SURVIVED: ("failure", "no test noticed this mutant"),
    Status.NO_COVERAGE: ("failure", "no test reaches this mutant"),
    Status.RUNTIME_ERROR: ("error", "this mutant could not be tested"),
    Status.COMPILE_ERROR: ("skipped", "this mutant does not compile"),
    Status.IGNORED: ("skipped", "ignored"),
    Status.PENDING: ("skipped", "not tested"),
}


def document(report: Mapping[str, Any]) -> bytes:
    """The XML of a report: a suite for each file; a mutant that the tests noticed is a test that passed."""
    suites = ET.Element("testsuites", name="mutants")
    files = groupby(entries(report), key=lambda entry: entry.result.mutant.path)
    for path, of_file in files:
        suites.append(_suite(path, of_file))
    _count(suites, list(suites.iter("testcase")))
    del suites.attrib["skipped"]  # not in the schema, at this place
    ET.indent(suites)
    text: bytes = ET.tostring(suites, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def _suite(path: str, mutants: Iterable[Entry]) -> ET.Element:
    suite = ET.Element("testsuite", name=_text(path), file=_text(path))
    suite.extend([_case(entry) for entry in mutants])
    _count(suite, list(suite))
    return suite


def _case(entry: Entry) -> ET.Element:
    result = entry.result
    mutant, start = result.mutant, result.mutant.location.start
    name = f"{start.line}:{start.column} {mutant.mutator} -> {' '.join(mutant.replacement.split())}"
    case = ET.Element("testcase", classname=_text(mutant.path), name=_text(name))
    case.set("time", f"{(result.duration or 0) / 1000:.3f}")
    if result.status in OUTCOMES:
        element, message = OUTCOMES[result.status]
        found = ET.SubElement(case, element, type=result.status.value, message=_text(_message(result, message)))
        found.text = _text("\n".join(filter(None, [entry.diff_text, result.status_reason])))
    return case


def _message(result: Result, message: str) -> str:
    return f"{result.status.value}: {message}"


def _count(suite: ET.Element, cases: list[ET.Element]) -> None:
    suite.set("tests", str(len(cases)))
    for name, element in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(name, str(sum(case.find(element) is not None for case in cases)))
    suite.set("time", f"{sum(float(case.get('time', '0')) for case in cases):.3f}")


def _text(text: str) -> str:
    return IMPOSSIBLE.sub("\N{REPLACEMENT CHARACTER}", text)
