"""Forms that CI servers read: annotations and a job summary of GitHub, SARIF, GitLab's Code Quality, and JUnit XML.

- Workflow commands: https://docs.github.com/actions/reference/workflows-and-actions/workflow-commands
- SARIF 2.1.0, also of other code scanners: https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
- Code Quality: https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format
- JUnit XML, for the CI servers that read nothing else: https://github.com/testmoapp/junitxml lists what they
  understand. The document is valid by the strictest schema, that of Jenkins' xUnit plugin: `file` belongs to a suite
  there, and a case has no line.

`prefix` leads from the repository's root to the report's, "" or with a `/` at its end.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree as ET

from attrs import evolve

import msp_bridge
from msp_bridge.model import Status
from msp_bridge.reports.results import ACCEPTED_REASON, Score, by_file, is_accepted
from msp_bridge.reports.standard import Report, ReportedMutant, entries
from msp_bridge.text import first_of, one_line, visible

MESSAGES = {
    Status.SURVIVED: "No test kills this mutant",
    Status.NO_COVERAGE: "No test runs this line, so none can kill this mutant",
}
SEVERITIES = {Status.SURVIVED: "minor", Status.NO_COVERAGE: "info"}
MAX_FILES = 100  # rows of the summary: GitHub rejects one of more than 1 MiB
SARIF_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
IMPOSSIBLE = re.compile("[\ufffe\uffff]")  # in XML 1.0, also escaped; control characters and surrogates are, too
MARKDOWN = str.maketrans({character: f"\\{character}" for character in "\\`*_[]<>|"})
OUTCOMES = {  # element, and its message
    Status.SURVIVED: ("failure", "no test kills this mutant"),
    Status.NO_COVERAGE: ("failure", "no test reaches this mutant"),
    Status.RUNTIME_ERROR: ("error", "this mutant could not be tested"),
    Status.COMPILE_ERROR: ("skipped", "this mutant does not compile"),
    Status.IGNORED: ("skipped", "ignored"),
    Status.PENDING: ("skipped", "not tested"),
}


def warnings(report: Report, prefix: str = "") -> Iterator[str]:
    """A workflow command of GitHub Actions for each missed mutant: a warning on its lines."""
    return (_warning(entry, prefix) for entry in _missed(report))


def summary(report: Report) -> str:
    """Markdown: the score, the count of each status, and the files in which most is missed."""
    results = [entry.result for entry in entries(report)]
    total = Score.of(results)
    counts = ", ".join(f"{total.counts[status]} {status.value}" for status in Status if total.counts[status])
    lines = [f"### Mutation score: {total.text}", "", counts or "There are no mutants.", ""]
    return "\n".join([*lines, *_table([row for row in by_file(results).items() if row[1].undetected])]) + "\n"


def sarif(report: Report, prefix: str = "") -> bytes:
    """SARIF 2.1.0: a result for each missed mutant, by which GitHub's code scanning recognises it the next time."""
    rules = [
        {"id": status.value, "shortDescription": {"text": text}, "defaultConfiguration": {"level": "warning"}}
        for status, text in MESSAGES.items()
    ]
    driver = {"name": "msp-bridge", "version": msp_bridge.__version__, "rules": rules}
    results = [_sarif_result(entry, prefix) for entry in _missed(report)]
    for entry in entries(report):
        if is_accepted(entry.result):
            reason = (entry.result.status_reason or "").removeprefix(ACCEPTED_REASON)
            suppression = {"kind": "external", "status": "accepted", "justification": reason}
            survivor = evolve(entry, result=evolve(entry.result, status=Status.SURVIVED))
            results.append({**_sarif_result(survivor, prefix), "suppressions": [suppression]})
    run = {"tool": {"driver": driver}, "columnKind": "utf16CodeUnits", "results": results}
    return _json({"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]})


def code_quality(report: Report, prefix: str = "") -> bytes:
    """GitLab's Code Quality report: an issue for each missed mutant."""
    return _json(
        [
            {
                "description": f"{_title(entry)}. {_message(entry)}",
                "check_name": entry.result.mutant.mutator,
                "fingerprint": entry.result.mutant.id,
                "severity": SEVERITIES[entry.result.status],
                "location": {
                    "path": prefix + entry.result.mutant.path,
                    "lines": {"begin": place.start.line, "end": place.end.line},
                },
            }
            for entry in _missed(report)
            for place in [entry.result.mutant.location]
        ]
    )


def _missed(report: Report) -> Iterator[ReportedMutant]:
    return (entry for entry in entries(report) if entry.result.status in MESSAGES)


def _title(entry: ReportedMutant) -> str:
    return f"{entry.result.status.value}: {one_line(entry.result.mutant.mutator)}"


def _message(entry: ReportedMutant) -> str:
    message = MESSAGES[entry.result.status]
    return f"{message}:\n{visible(entry.diff_text)}" if entry.diff else f"{message}."


def _warning(entry: ReportedMutant, prefix: str) -> str:
    mutant = entry.result.mutant
    start, end = mutant.location.start, mutant.location.end
    places = {"file": prefix + mutant.path, "line": start.line, "endLine": end.line}
    if start.line == end.line:  # GitHub takes columns only within a line
        places |= {"col": start.column, "endColumn": end.column}
    places["title"] = _title(entry)
    properties = ",".join(f"{name}={_property(str(value))}" for name, value in places.items())
    return f"::warning {properties}::{_data(_message(entry))}"


def _data(text: str) -> str:
    return visible(text).replace("%", "%25").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(one_line(text)).replace(":", "%3A").replace(",", "%2C")


def _table(rows: Sequence[tuple[str, Score]]) -> Iterator[str]:
    if not rows:
        return
    yield from ("| file | score | missed |", "|---|---|---|")
    worst = sorted(rows, key=lambda row: -row[1].undetected)
    lines = [f"| {cell(path)} | {score.text} | {score.undetected} |" for path, score in worst]
    yield from first_of(lines, MAX_FILES, more="| … {} more files | | |")


def cell(text: str) -> str:
    """`text` as a cell of a Markdown table."""
    return one_line(text).translate(MARKDOWN)


def _sarif_result(entry: ReportedMutant, prefix: str) -> Mapping[str, Any]:
    mutant = entry.result.mutant
    start, end = mutant.location.start, mutant.location.end
    region = {"startLine": start.line, "startColumn": start.column, "endLine": end.line, "endColumn": end.column}
    place = {"artifactLocation": {"uri": quote(prefix + mutant.path)}, "region": region}
    return {
        "ruleId": entry.result.status.value,
        "message": {"text": f"{one_line(mutant.mutator)}: {_message(entry)}"},
        "locations": [{"physicalLocation": place}],
        "partialFingerprints": {"mutantId/v1": mutant.id},
    }


def _json(value: Any) -> bytes:
    return json.dumps(value, indent=1).encode() + b"\n"


def junit(report: Mapping[str, Any]) -> bytes:
    """The XML of a report: a suite for each file; a mutant that the tests killed is a test that passed."""
    suites = ET.Element("testsuites", name="mutants")
    files = groupby(entries(report), key=lambda entry: entry.result.mutant.path)
    for path, of_file in files:
        suite = ET.SubElement(suites, "testsuite", name=_text(path), file=_text(path))
        suite.extend([_case(entry) for entry in of_file])
        _count(suite, list(suite))
    _count(suites, list(suites.iter("testcase")))
    del suites.attrib["skipped"]  # not in the schema, at this place
    ET.indent(suites)
    text: bytes = ET.tostring(suites, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def _case(entry: ReportedMutant) -> ET.Element:
    result, mutant = entry.result, entry.result.mutant
    name = f"{mutant.location.start} {mutant.mutator} -> {entry.replacement}"
    case = ET.Element("testcase", classname=_text(mutant.path), name=_text(name))
    case.set("time", f"{(result.duration or 0) / 1000:.3f}")
    if result.status in OUTCOMES:
        element, message = OUTCOMES[result.status]
        found = ET.SubElement(
            case, element, type=result.status.value, message=_text(f"{result.status.value}: {message}")
        )
        found.text = _text("\n".join(filter(None, [entry.diff_text, result.status_reason])))
    return case


def _count(suite: ET.Element, cases: list[ET.Element]) -> None:
    suite.set("tests", str(len(cases)))
    for name, element in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(name, str(sum(case.find(element) is not None for case in cases)))
    suite.set("time", f"{sum(float(case.get('time', '0')) for case in cases):.3f}")


def _text(text: str) -> str:
    return IMPOSSIBLE.sub("\N{REPLACEMENT CHARACTER}", visible(text))
