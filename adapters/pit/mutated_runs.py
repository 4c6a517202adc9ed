"""PIT's run of the tests with a mutant's class file in place of the project's, and the reports of PIT's own runs."""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from attrs import define, field

from msp_bridge.adapter import ToolError

from .maven import Module
from .plugin_runs import PluginRuns

TIMEOUT_FACTOR, TIMEOUT_MARGIN_S = 6.0, 10.0  # of the run without a mutant, for which PIT has no limit
KILLED, SURVIVED, TIMED_OUT = "KILLED", "SURVIVED", "TIMED_OUT"  # PIT's words
TESTS_FAIL = "without mutation"  # "1 tests did not pass without mutation when calculating line coverage."
ONE_OF_EACH_CLASS = "+CLASSLIMIT(limit[1])"  # without any, PIT runs no test
KEEP_COMPILED = "-Dmaven.main.skip=true"
REPORT = "mutations.xml"
DETAILS = re.compile(
    r"clazz=(?P<owner>.*?), method=(?P<method>.*?), methodDesc=(?P<signature>.*?)\], "
    r"indexes=(?P<indexes>\[[\d, ]*\]), mutator=(?P<mutator>.*?)\]"
)


@define
class MutatedRuns:
    """Runs of the tests of `module`, one at a time, in a copy that is compiled."""

    plugin: PluginRuns
    module: Module
    _controls: dict[tuple[str, ...], float | None] = field(factory=dict, init=False)  # seconds, by test classes

    async def status(self, owner: str, mutated: bytes, tests: Collection[str]) -> str | None:
        """PIT's word for what the classes of `tests` say of the class `owner` as `mutated` has it; no tests: all.

        None where nothing is known: they don't pass without the mutant, or PIT does not come as far as the tests.
        """
        classes = tuple(sorted({self._test_class(test) for test in tests}))
        if classes not in self._controls:
            start = time.monotonic()
            passes = await self._outcome(owner, classes) == SURVIVED
            self._controls[classes] = time.monotonic() - start if passes else None
        control = self._controls[classes]
        if control is None:
            return None
        with _replaced(self._compiled(self.module.configuration.classes, owner), mutated):
            try:
                async with asyncio.timeout(TIMEOUT_MARGIN_S + TIMEOUT_FACTOR * control):
                    return await self._outcome(owner, classes)
            except TimeoutError:
                return TIMED_OUT

    def _compiled(self, root: Path, name: str) -> Path:
        """The file of a class in the copy."""
        here = root.relative_to(self.module.configuration.directory)
        return self.plugin.copy / self.module.name / here / f"{name.replace('.', '/')}.class"

    def _test_class(self, test: str) -> str:
        """The class of `example.PriceTest.total()`."""
        name = test.partition("(")[0]
        while "." in name and not self._compiled(self.module.configuration.test_classes, name).is_file():
            name = name.rpartition(".")[0]
        return name

    async def _outcome(self, owner: str, classes: tuple[str, ...]) -> str | None:
        settings: dict[str, str | tuple[str, ...]] = {
            "targetClasses": (owner,),
            "excludedMethods": (),
            "features": (*self.module.configuration.lists["features"], ONE_OF_EACH_CLASS),
            "skipFailingTests": "false",
        }
        if classes:
            settings["targetTests"] = classes
        try:
            await self.plugin.run({self.module.name: settings}, KEEP_COMPILED)
        except ToolError as error:
            return KILLED if TESTS_FAIL in error.problem else None
        report = self.plugin.reports(self.module) / REPORT
        return SURVIVED if any(True for _ in mutations(report)) else None


@contextlib.contextmanager
def _replaced(place: Path, content: bytes) -> Iterator[None]:
    original = place.read_bytes()
    place.write_bytes(content)
    try:
        yield
    finally:
        place.write_bytes(original)


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
