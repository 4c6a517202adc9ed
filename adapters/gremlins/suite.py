"""Suite: the test binary of one package, and what its tests do without a mutant.

Each test is run alone in an instrumented binary, so that a mutant meets only the tests that run its code. A test that
does not pass alone covers nothing here; the run of all tests that confirms a survivor includes it.

Code counts, too, that tests cover in processes of the same binary: go writes it into the directory that GOCOVERDIR
names. A file that is added to the package sets that, because such a process may have an environment of its own.

Some code that runs is in no profile: that of programs which tests build, what `TestMain` runs after the tests, when go
has written it, and what tests run only without coverage.
"""

from __future__ import annotations

import asyncio
import bisect
import logging
import math
import re
import tempfile
from collections.abc import Iterable, Sequence
from functools import cached_property, partial
from pathlib import Path

from attrs import define, evolve, field, frozen

from msp_bridge import reading
from msp_bridge.adapter import BaselineError, FailingTest, ToolError
from msp_bridge.concurrency import in_thread
from msp_bridge.phases import BASELINE, report_phase

from .execution import ALWAYS, Outcome, TestRunner, only
from .go import PLACE, STARTED, Go, Package, overlay_option, placed
from .listing import TestOptions

log = logging.getLogger(__name__)

NAMES = re.compile(r"^(?:Test|Example|Fuzz)\S*$", re.MULTILINE)
BLOCK = re.compile(r"^(.+):(\d+)\.(\d+),(\d+)\.(\d+) \d+ (\d+)$", re.MULTILINE)
PASSED = re.compile(r"^passed (\S+)$", re.MULTILINE)
TIMES = re.compile(r"^(\d+)m([\d.]+)s (\d+)m([\d.]+)s$", re.MULTILINE)  # user and system
TEST_MAIN = re.compile(rb"^func TestMain\((\w+) \*\w+\.M\) \{(.*\}$|[\s\S]*?^\})", re.MULTILINE)  # with its body
VERBOSE = re.compile(rb'testing\.Verbose\b|"test\.v"')  # tests that ask for it
DEADLINE = re.compile(rb'\.Deadline\(\)|"test\.timeout"')
COVERAGE = b"testing.CoverMode"  # tests that ask for it are often skipped with coverage
TIMED = '"$@"; code=$?; times; exit $code'
TOGETHER = "measured"  # the binary in the place NAME writes NAME.profile, and its child processes into NAME.children
ADDED_FILE = "msp_bridge_gremlin_test.go"  # no coverage of tests is measured: go's tool for it knows no overlay
MEASURED = """package {name}

import (
	gremlinOs "os"
	gremlinFilepath "path/filepath"
	gremlinStrconv "strconv"
	gremlinStrings "strings"
)

func init() {{
	if place := gremlinStarted(); place != "" {{
		directory := place + ".children"
		gremlinOs.MkdirAll(directory, 0700)
		gremlinOs.Setenv("GOCOVERDIR", directory)
	}}
}}
"""
ALONE = """
place=$1 binary=$2 options=$3 number=0; shift 3
for name; do
    number=$((number + 1))
    "$place$number/$binary" -test.paniconexit0 -test.timeout=10m $options "-test.run=^$name\\$" \\
        "-test.coverprofile=$place$number.profile" > /dev/null 2>&1 && echo "passed $name"
done
exit 0
"""
MAX_ROUNDS = 3  # tests that fail are left out, and others may fail then
SUITE_LIMIT_S = 600.0  # go's own for the tests of a package
ALONE_LIMIT_S = 30.0  # for all tests alone, or three times what they take together
SHOWN_CHARS = 600  # of what the compiler prints

Blocks = list[tuple[tuple[int, int], tuple[int, int]]]  # start and end, line and column (1-based, bytes), in order


@frozen
class Profile:
    """The code that a run has covered: blocks by file, which go names by import path and name.

    Some code is in no block, and so in no profile: the expressions of a `case`.
    """

    covered: dict[str, Blocks] = field(factory=dict)
    uncovered: dict[str, Blocks] = field(factory=dict)

    @classmethod
    def read(cls, files: Iterable[Path], *, covered_only: bool = False) -> Profile:
        """Read the profiles that a run has written, as far as they are there. Blocks."""
        profile = cls()
        text = "".join(file.read_text("utf-8") for file in files if file.exists())
        for name, *numbers in BLOCK.findall(text):
            line, column, last_line, last_column, count = map(int, numbers)
            if covered_only and not count:
                continue
            found = profile.covered if count else profile.uncovered
            found.setdefault(name, []).append(((line, column), (last_line, last_column)))
        for blocks in (*profile.covered.values(), *profile.uncovered.values()):
            blocks.sort()
        return profile

    def covers(self, file: str, line: int, column: int) -> bool:
        """Whether the place lies in a covered block."""
        return _is_in(self.covered.get(file, []), (line, column))

    def leaves_out(self, file: str, line: int, column: int) -> bool:
        """Whether the place lies in no block of a file that has some: nothing says which tests run it."""
        covered, uncovered = self.covered.get(file, []), self.uncovered.get(file, [])
        return bool(covered or uncovered) and not any(_is_in(blocks, (line, column)) for blocks in (covered, uncovered))


def goes_on_after_tests(text: bytes) -> bool:
    """Whether a file has a `TestMain` that does more with its `m` than `os.Exit(m.Run())`."""
    main = TEST_MAIN.search(text)
    if main is None:
        return False
    name = re.escape(main[1])
    return re.search(rb"\b%b\b" % name, re.sub(rb"\bos\.Exit\(%b\.Run\(\)\)" % name, b"", main[2])) is not None


def modes(texts: Iterable[bytes]) -> tuple[str, ...]:
    """How tests with these texts run: where they would see it, as in `go test`.

    Else verbosely, which names the test that ends the process, and without a deadline, so that the runtime ends a
    deadlock at once.
    """
    files = list(texts)
    verbose = () if any(map(VERBOSE.search, files)) else ("-test.v",)
    return (*verbose, "-test.timeout=10m" if any(map(DEADLINE.search, files)) else "-test.timeout=0")


def _is_in(blocks: Blocks, place: tuple[int, int]) -> bool:
    last = bisect.bisect_right(blocks, (place, (1 << 62, 0)))
    return any(place < end for _, end in blocks[:last])


@frozen
class Suite:
    """The tests of one package in the project as it is."""

    package: Package
    binary: Path  # instrumented; without any mutant
    tests: tuple[str, ...]  # passing tests, in the order of a run
    failing: tuple[FailingTest, ...]
    options: tuple[str, ...] = ()  # of each run
    modes: tuple[str, ...] = ()  # of runs of several tests
    seconds: float = 0.0  # for all tests
    cpu_seconds: float = 0.0
    runs_more: bool = False  # than its profiles have
    together: Profile = field(factory=Profile)
    alone: dict[str, Profile] = field(factory=dict)  # by tests that pass alone

    def arguments(self, tests: tuple[str, ...] = ()) -> list[str]:
        """The arguments for a run of `tests`; of all that pass, if there are none."""
        left_out = [f"-test.skip={only(each.test for each in self.failing)}"] if self.failing else []
        return [*ALWAYS, *self.modes, *self.options, *([f"-test.run={only(tests)}"] if tests else left_out)]

    @cached_property
    def limits(self) -> tuple[float, int]:
        """How long a run with a mutant may take: seconds, and seconds of CPU."""
        return 10 + 10 * self.seconds, max(3, math.ceil(20 * self.cpu_seconds))


@define
class SuiteMeasurement:
    """Measures suites; raises `BaselineError` when the tests of a package can't run."""

    go: Go
    runner: TestRunner
    options: TestOptions

    async def measure(self, package: Package, directory: Path) -> Suite:
        """Build and run the tests of `package`, which decides what is isolated. Binary and profiles: `directory`."""
        if not package.has_tests:
            return Suite(package, directory, (), ())
        report_phase(f"{BASELINE}: {package.path}")
        place = Path(tempfile.mkdtemp(dir=directory))  # an earlier measurement may have been cancelled
        text = (MEASURED.format(name=package.name) + STARTED).encode()
        added = {f"{package.directory}/{ADDED_FILE}": text} if package.files else {}
        overlay = await in_thread(overlay_option, place / "overlay", self.go.root, added)
        covered = self.options.coverpkg or ("./..." if self.options.everything else "")
        cover = ["-cover", *([f"-coverpkg={covered}"] if covered else [])]
        built = await self.go.build_tests(package, place, *self.options.for_tests, overlay, *cover)
        if isinstance(built, str):
            raise self._error(package, "can't be built", " ".join(built.split())[:SHOWN_CHARS], [])
        lists, binary = await in_thread(lambda: [placed(built, place, name) for name in ("listed", TOGETHER)])
        listed = await self.runner.run(package, [str(lists), "-test.list=."])
        suite = Suite(package, binary, tuple(NAMES.findall(listed.printed)), (), self.options.for_runs)
        if not suite.tests:
            return suite
        directory = self.go.root / package.directory
        texts = await in_thread(lambda: [reading.content(directory / name) for name in package.tests])
        runs_more = package.starts_programs or any(COVERAGE in each or goes_on_after_tests(each) for each in texts)
        suite = await self._passing(evolve(suite, runs_more=runs_more, modes=modes(texts)))
        return await self._alone(suite, place)

    async def _passing(self, suite: Suite) -> Suite:
        """Run all tests, and leave out failing ones."""
        for _ in range(MAX_ROUNDS):
            outcomes: list[Outcome] = []

            async def passes(suite: Suite = suite, outcomes: list[Outcome] = outcomes) -> bool:
                arguments = [each for each in suite.arguments() if each != "-test.failfast"]
                measured = [str(suite.binary), *arguments, f"-test.coverprofile={suite.binary.parent}.profile"]
                argv = ["sh", "-c", TIMED, "sh", *measured]
                outcomes.append(await self.runner.run(suite.package, argv, seconds=SUITE_LIMIT_S))
                return outcomes[-1].code == 0

            if await self.runner.isolation.decide(passes):
                spent = [float(part) for part in TIMES.findall(outcomes[-1].printed)[-1]]
                cpu = 60 * (spent[0] + spent[2]) + spent[1] + spent[3]
                profile = await self._profile(suite.binary)
                return evolve(suite, seconds=outcomes[-1].seconds, cpu_seconds=cpu, together=profile)
            failed = [test for test in outcomes[0].failed if test in suite.tests]
            if not failed or len(failed) == len(suite.tests):
                break
            failing = (*suite.failing, *(FailingTest(test, outcomes[0].reason_of(test)) for test in failed))
            suite = evolve(suite, tests=tuple(test for test in suite.tests if test not in failed), failing=failing)
        raise self._error(suite.package, "fail without any mutant", outcomes[0].reason, outcomes[0].failed)

    async def _alone(self, suite: Suite, place: Path) -> Suite:
        numbered = [(test, str(number)) for number, test in enumerate(suite.tests, 1)]
        alone = await in_thread(lambda: {test: placed(suite.binary, place, number) for test, number in numbered})
        limit = max(ALONE_LIMIT_S, 3 * suite.seconds)
        argv = ["sh", "-c", ALONE, "sh", f"{place / PLACE}", suite.binary.name, " ".join(suite.options), *suite.tests]
        outcome = await self.runner.run(suite.package, argv, seconds=limit)
        passed = PASSED.findall(outcome.printed)
        profiles = {test: await self._profile(alone[test], covered_only=True) for test in passed}
        return evolve(suite, alone=profiles)

    async def _profile(self, binary: Path, *, covered_only: bool = False) -> Profile:
        """The profile of a run of `binary` and of the processes of it that its tests have started."""
        profiles, children = [Path(f"{binary.parent}.profile")], Path(f"{binary.parent}.children")
        if await in_thread(lambda: any(children.glob("covcounters.*"))):
            profiles.append(Path(f"{children}.profile"))
            try:
                await self.go.write_profile(children, profiles[-1])
            except ToolError as error:  # one was killed while it wrote
                log.warning("what processes of tests cover is not known: %s", error)
        return await in_thread(partial(Profile.read, profiles, covered_only=covered_only))

    def _error(self, package: Package, what: str, printed: str, failed: Sequence[str]) -> BaselineError:
        remedy = f"make `go test ./{package.directory}` pass first"
        return BaselineError(f"the tests of {package.path} {what}: {printed}", remedy, failed, printed)


@define
class MeasuredSuites:
    """The suites of packages in one state of the files, each measured once, whichever requests want it."""

    measurement: SuiteMeasurement
    state: object
    directory: Path
    requests: int = 0  # that use them
    _suites: dict[Package, Suite] = field(factory=dict, init=False)
    _measuring: asyncio.Lock = field(factory=asyncio.Lock, init=False)

    @property
    def failing(self) -> list[str]:
        """The tests that fail without any mutant, as far as they are measured."""
        return sorted({each.test for suite in self._suites.values() for each in suite.failing})

    def knows(self, package: Package) -> bool:
        """Whether the suite of `package` is measured, or has no tests."""
        return package in self._suites or not package.has_tests

    async def of(self, package: Package) -> Suite:
        """Return the suite of `package`; raises `BaselineError`."""
        async with self._measuring:
            if package not in self._suites:
                self._suites[package] = await self.measurement.measure(package, self.directory)
            return self._suites[package]
