"""The reports of PIT's own runs: its verdicts, and the class files of mutants."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from msp_bridge.adapter import ToolError

REPORT = "mutations.xml"
DETAILS = re.compile(
    r"clazz=(?P<owner>.*?), method=(?P<method>.*?), methodDesc=(?P<signature>.*?)\], "
    r"indexes=(?P<indexes>\[[\d, ]*\]), mutator=(?P<mutator>.*?)\]"
)


def answers(reports: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The keys of mutants, and PIT's answers, as those of the host. Blocks; raises `ToolError`."""
    for mutation in mutations(reports / REPORT):
        killing = mutation.findtext("killingTest") or mutation.findtext("killingTests")
        yield (
            _key(mutation),
            {
                "status": mutation.get("status"),
                "killing": [killing] if killing else [],
                "run": int(mutation.get("numberOfTestsRun", 0)),
                "exit": "of PIT's own",
            },
        )


def exported(reports: Path) -> Iterator[tuple[str, Path]]:
    """The keys of mutants, and their class files, which PIT's feature EXPORT has written. Blocks."""
    for details in reports.glob("export/**/mutants/*/details.txt"):
        found = DETAILS.search(details.read_text("utf-8"))
        if found is not None:
            [mutated] = details.parent.glob("*.class")
            yield "{owner}.{method}{signature}{indexes}{mutator}".format_map(found.groupdict()), mutated


def mutations(report: Path) -> Iterator[ElementTree.Element]:
    """The mutants in a report; none where PIT has written no report. Blocks; raises `ToolError`."""
    if not report.is_file():
        return
    try:
        yield from ElementTree.parse(report).getroot()  # noqa: S314  PIT has written it
    except ElementTree.ParseError as error:
        raise ToolError(f"PIT's report can't be read: {error}", "run `mvn pitest:mutationCoverage`") from error


def _key(mutation: ElementTree.Element) -> str:
    """The key of a mutant, as `programs/Analysis.java` makes it."""
    names = ("mutatedClass", "mutatedMethod", "methodDescription", "mutator")
    owner, method, signature, mutator = (mutation.findtext(name, "") for name in names)
    indexes = ", ".join(index.text or "" for index in mutation.iter("index"))
    return f"{owner}.{method}{signature}[{indexes}]{mutator}"
