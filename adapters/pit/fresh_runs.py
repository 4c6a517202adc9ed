"""PIT's own verdicts on some mutants, in a fresh copy of the project, with a JVM for each: for `run --verify`.

Theory of operation
-------------------
PIT's plug-in for Maven runs as the pom configures it (`plugin_runs`), but only on the classes of the mutants, and with
a JVM for each mutant. A plug-in for PIT of our own leaves out the other mutants of these classes, each of which would
take a JVM, too, and says how many were tested.

That JVM is not always right: the plug-in for JUnit 5 runs all tests of a class before the mutant is in it, so whatever
the code computes once is computed without the mutant. So where PIT contradicts a result, the class file that PIT has
made of the mutant takes the place of the project's, and PIT's own run of the tests before it mutates anything decides
(`MutatedRuns`): they have to pass, as in every run of PIT. The tests are those of the classes that have killed the
mutant, or that cover it, and must pass without it. Where that is not so, or they let a mutant live that was killed,
they may need what other tests leave: then all test classes run, in PIT's order.
"""

import asyncio
import contextlib
import re
import shutil
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from attrs import define, field, frozen

from msp_bridge.adapter import Result, ToolError
from msp_bridge.concurrency import in_thread
from msp_bridge.phases import Phase, report_phase
from msp_bridge.toolkit import Sandbox

from .builds import TARGET, targets
from .listing import KILLED, SURVIVED, TIMED_OUT
from .maven import Module
from .plugin_runs import SAMPLE, PluginRuns, write_sample
from .tool import Tool

TIMEOUT_FACTOR, TIMEOUT_MARGIN_S = 6.0, 10.0  # of the run without a mutant, for which PIT has no limit
TESTS_FAIL = "without mutation"  # "1 tests did not pass without mutation when calculating line coverage."
ONE_OF_EACH_CLASS = "+CLASSLIMIT(limit[1])"  # without any, PIT runs no test
KEEP_COMPILED = "-Dmaven.main.skip=true"
REPORT = "mutations.xml"
DETAILS = re.compile(
    r"clazz=(?P<owner>.*?), method=(?P<method>.*?), methodDesc=(?P<signature>.*?)\], "
    r"indexes=(?P<indexes>\[[\d, ]*\]), mutator=(?P<mutator>.*?)\]"
)
PREPARING = "Maven compiles a fresh copy, and PIT runs its tests without mutants"
TESTING = "PIT tests the mutants again"
SETTLING = "where PIT contradicts, its tests run on the mutated class"
TESTED = b"msp-bridge: tested"  # what `programs/SampledMutants.java` prints for each mutant
EXPORT = "+EXPORT"  # a feature of PIT: the class files of the mutants are written beside its report


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


@frozen
class Chosen:
    """The results that are in question for mutants of `module`, by their keys; `tool` is PIT for it."""

    module: Module
    results: Mapping[str, Result]
    tool: Tool

    def settings(self, jobs: int) -> dict[str, str | tuple[str, ...]]:
        """Make those of the plug-in."""
        return {
            "targetClasses": tuple(sorted({_owner(key) for key in self.results})),
            "features": (*self.module.configuration.lists["features"], EXPORT, SAMPLE),
            "mutationUnitSize": "1",  # mutants of one JVM
            "threads": str(jobs),
        }


@define
class _Counted:
    """How many mutants were tested, as `heard` has it from PIT's run."""

    phase: Phase
    _done: int = 0
    _end: bytes = b""  # of what was heard, without a whole TESTED

    def heard(self, piece: bytes) -> None:
        text = self._end + piece
        self._end = text[1 - len(TESTED) :]
        if TESTED in text:
            self._done += text.count(TESTED)
            self.phase.reached(self._done)


async def fresh_answers(
    root: Path, modules: Sequence[Module], chosen: Sequence[Chosen], jobs: int
) -> dict[tuple[str, str], dict[str, Any]]:
    """PIT's answers, as those of the host, by module and key. `modules` are all of the project. Raises `ToolError`."""
    home = Path(tempfile.mkdtemp(prefix="msp-bridge-"))
    try:
        samples = {
            each.module.name: await in_thread(write_sample, home / f"{at}.jar", each.tool.program, each.results)
            for at, each in enumerate(chosen)
        }
        report_phase(PREPARING)
        plugin = PluginRuns(await in_thread(_copy, home, root), modules, samples)
        counted = _Counted(Phase(TESTING, sum(len(each.results) for each in chosen)))
        await plugin.run({each.module.name: each.settings(jobs) for each in chosen}, heard=counted.heard)
        return {
            (each.module.name, key): answer for each in chosen for key, answer in (await _settled(plugin, each)).items()
        }
    finally:
        await in_thread(shutil.rmtree, home, True)


def _copy(home: Path, root: Path) -> Path:
    sandbox = Sandbox.claim(home, root, left_out=frozenset({TARGET}))
    try:
        sandbox.overlaid |= targets(root)
        sandbox.refresh()
        return sandbox.path
    finally:
        sandbox.close()


async def _settled(plugin: PluginRuns, chosen: Chosen) -> dict[str, dict[str, Any]]:
    """PIT's answers; where they contradict a result, those of the mutated class."""
    reports, runs = plugin.reports(chosen.module), MutatedRuns(plugin, chosen.module)
    found = await in_thread(lambda: dict(answers(reports)))
    files = await in_thread(lambda: {key: file.read_bytes() for key, file in exported(reports)})
    contradicted = [
        (key, result)
        for key, result in chosen.results.items()
        if key in found and key in files and result.status.detected != (found[key]["status"] in (KILLED, TIMED_OUT))
    ]
    for done, (key, result) in enumerate(contradicted):
        report_phase(SETTLING, done, len(contradicted), begins=not done)
        tests = result.killed_by or result.covered_by or ()
        status = await runs.status(_owner(key), files[key], tests)
        if tests and (status is None or (status == SURVIVED and result.status.detected)):
            status = await runs.status(_owner(key), files[key], ())  # they may need what others leave
        if status is not None:
            found[key] |= {"status": status, "killing": []}
    return found


def _owner(key: str) -> str:
    """The name of the class in the key of a mutant: `example.Price.total(I)I[5]…`."""
    return key.partition("(")[0].rpartition(".")[0]
