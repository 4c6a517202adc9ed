"""The rules of gremlins' verdicts, and what go and test binaries print: without go, whose part a script has here."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import pytest
from attrs import evolve, field, frozen
from msp_bridge.adapters.gremlins.binaries import MAX_ADDED, Binary, MutatedBinaries, Refused, by_package
from msp_bridge.adapters.gremlins.execution import Edit, Outcome, only
from msp_bridge.adapters.gremlins.go import Go, Package
from msp_bridge.adapters.gremlins.listing import Found, go_files
from msp_bridge.adapters.gremlins.listing import TestOptions as Options
from msp_bridge.adapters.gremlins.run import NOT_BUILT, GremlinsRun
from msp_bridge.adapters.gremlins.suite import Profile, Suite, goes_on_after_tests, modes
from support.environments import program
from support.files import written

from msp_bridge import reading
from msp_bridge.adapter import FailingTest, Location, Mutant, Notice, Position, Result, Status, ToolError
from msp_bridge.concurrency import all_of
from msp_bridge.toolkit import JobScheduler

SOURCE = "package f\n\nfunc F(n int) int {\n\treturn n + 1\n}\n\nvar One = F(0)\n"
PACKAGE = Package("m/f", "f", "f", ("f.go",), ("f_test.go",), frozenset(), False, ())
MEASURED, MUTATED = Path("/measured/f.test"), Path("/mutated/f.test")
BODY, OTHER = {"m/f/f.go": [((3, 19), (5, 2))]}, {"m/f/f.go": [((7, 11), (7, 15))]}
PASSED, FAILED = Outcome(0, "", 1.0), Outcome(1, "--- FAIL: TestF (0.00s)\n    f_test.go:7: 3 is not 2\n", 1.0)
LATE = Outcome(None, "", 9.0)
Tests = tuple[str, ...]  # of one run; none: all
Ran = Callable[[bool, Tests], Outcome]  # with the mutant or without it


def mutant(line: int = 4, column: int = 11, text: str = "-", **handle: Any) -> Mutant:
    start = SOURCE.index("+")
    digest = reading.digest_of(SOURCE.encode())
    found = Found(digest, start, start + 1, text, line, column, (11, 44), False, "", -1)
    place = Location(Position(line, column), Position(line, column + 1))
    return Mutant("f/f.go", "ARITHMETIC_BASE", place, text, None, evolve(found, **handle))


def suite(**about: Any) -> Suite:
    """Of two tests, of which one runs the code of the mutants."""
    alone = {"TestF": Profile(BODY), "TestG": Profile()}
    whole = Suite(PACKAGE, MEASURED, ("TestF", "TestG"), (), together=Profile(BODY, OTHER), alone=alone)
    return evolve(whole, **about)


@frozen
class Scripted:
    """In place of the suites, the binaries and the runner: one suite, a mutant that is built, and `ran`."""

    root: Path
    suite: Suite
    ran: Ran
    built: Refused | None = None
    runs: list[tuple[bool, Tests]] = field(factory=list)

    @property
    def go(self) -> Go:
        return Go(self.root)

    @property
    def measurement(self) -> Self:
        return self

    options = Options()

    def knows(self, package: Package) -> bool:
        return True

    async def of(self, package: Package) -> Suite:
        return self.suite

    def groups(self, package: Package, mutants: Sequence[Mutant]) -> tuple[list[list[Mutant]], list[Mutant]]:
        return [], list(mutants)

    async def alone(self, package: Package, mutant: Mutant) -> Binary | Refused:
        return self.built or Binary(MUTATED, {0: mutant})

    async def refused(self, package: Package, mutants: Sequence[Mutant]) -> list[Refused]:
        return [self.built] if self.built else []

    def edit(self, mutant: Mutant, place: Path) -> Edit | None:
        return None

    async def run(self, package: Package, argv: Sequence[str], **limits: Any) -> Outcome:
        chosen = [
            part.removeprefix("-test.run=^(").removesuffix(")$") for part in argv if part.startswith("-test.run=")
        ]
        tests = tuple(chosen[0].split("|")) if chosen else ()
        self.runs.append((argv[0] == str(MUTATED), tests))
        return self.ran(*self.runs[-1])

    async def results(self, *mutants: Mutant, packages: Sequence[Package] = (PACKAGE,)) -> list[Result | Notice]:
        self.runs.clear()
        here: Any = self
        return await all_of(GremlinsRun(packages, here, here, here, JobScheduler(lambda: 1)).results(mutants))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return written(tmp_path / "project", {"f/f.go": SOURCE})


def always(with_mutant: Outcome, without: Outcome = PASSED) -> Ran:
    return lambda has_mutant, tests: with_mutant if has_mutant else without


@pytest.mark.parametrize(
    ("ran", "status", "runs"),
    [
        # The test that runs the code fails, and fails alone, too.
        (always(FAILED), Status.KILLED, [(True, ("TestF",)), (True, ("TestF",))]),
        # It passes: all tests decide.
        (always(PASSED), Status.SURVIVED, [(True, ("TestF",)), (True, ())]),
        # A later test fails, which does not run the code: in the order of all, and alone.
        (
            lambda has_mutant, tests: (
                PASSED if tests == ("TestF",) else evolve(FAILED, printed="--- FAIL: TestG (0s)\n")
            ),
            Status.KILLED,
            [(True, ("TestF",)), (True, ()), (True, ("TestG",))],
        ),
        # It ends at its limit, and does not without the mutant.
        (always(LATE), Status.TIMEOUT, [(True, ("TestF",)), (False, ("TestF",))]),
    ],
    ids=["killed", "survived", "killed by a later test", "timed out"],
)
async def test_the_tests_that_run_the_code_decide_and_then_all(
    root: Path, ran: Ran, status: Status, runs: list[tuple[bool, Tests]]
) -> None:
    scripted = Scripted(root, suite(), ran)
    [result] = await scripted.results(mutant())
    assert isinstance(result, Result)
    assert (result.status, result.covered_by) == (status, ("TestF",))
    assert scripted.runs == runs


async def test_a_test_that_fails_by_chance_kills_nothing(root: Path) -> None:
    outcomes = iter([FAILED, PASSED, PASSED])
    scripted = Scripted(root, suite(), lambda has_mutant, tests: next(outcomes))
    [result] = await scripted.results(mutant())
    assert isinstance(result, Result)
    assert result.status is Status.SURVIVED
    assert scripted.runs == [(True, ("TestF",)), (True, ("TestF",)), (True, ())]


@pytest.mark.parametrize("runs_more", [False, True])
async def test_what_no_test_runs_has_no_coverage_and_is_run_where_coverage_does_not_know_all(
    root: Path, runs_more: bool
) -> None:
    scripted = Scripted(root, suite(runs_more=runs_more), always(PASSED))
    [result] = await scripted.results(mutant(line=7))
    assert isinstance(result, Result)
    assert (result.status, result.covered_by) == (Status.NO_COVERAGE, ())
    assert scripted.runs == ([(True, ())] if runs_more else [])


async def test_what_is_not_tested_says_why(root: Path) -> None:
    refused = Refused(mutant(), "undefined: n")
    scripted = Scripted(root, suite(), always(PASSED), refused)
    ignored = mutant(text="*", ignored="//nomutant")
    reasons = [
        (each.status, each.status_reason)
        for each in await scripted.results(mutant(), ignored)
        if isinstance(each, Result)
    ]
    assert reasons == [(Status.IGNORED, "//nomutant"), (Status.COMPILE_ERROR, "undefined: n")]
    [unbuilt] = await scripted.results(mutant(), packages=[evolve(PACKAGE, files=())])
    assert isinstance(unbuilt, Result)
    assert (unbuilt.status, unbuilt.status_reason) == (Status.NO_COVERAGE, NOT_BUILT)
    assert await scripted.results(mutant(digest="of another text")) == []
    failing = FailingTest("TestRed", "red")
    assert (await Scripted(root, suite(failing=(failing,)), always(PASSED)).results(mutant()))[0] == failing


def test_code_in_no_block_is_covered_by_all_tests() -> None:
    """The expressions of a `case` are in none, nor is what runs when the binary starts."""
    profile = Profile({"a.go": [((1, 1), (2, 9))]}, {"a.go": [((4, 1), (5, 1))]})
    assert [profile.covers("a.go", *place) for place in ((1, 1), (2, 8), (2, 9), (4, 1))] == [True, True, False, False]
    assert [profile.leaves_out("a.go", *place) for place in ((1, 1), (3, 1), (4, 1))] == [False, True, False]
    assert not profile.leaves_out("b.go", 1, 1)


def test_a_profile_is_read_from_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "1.profile").write_text("mode: set\nm/f/f.go:3.19,5.2 1 1\nm/f/g.go:1.1,2.2 1 0\n")
    both = Profile.read([tmp_path / "1.profile", tmp_path / "2.profile"])
    assert both == Profile({"m/f/f.go": BODY["m/f/f.go"]}, {"m/f/g.go": [((1, 1), (2, 2))]})
    assert Profile.read([tmp_path / "1.profile"], covered_only=True).uncovered == {}


@pytest.mark.parametrize(
    ("printed", "reason"),
    [
        ("=== RUN   TestA\n    a_test.go:3: fine\n=== RUN   TestB\n--- FAIL: TestB (0.00s)\n", "TestB failed"),
        ("=== RUN   TestA\n=== RUN   TestB\n=== CONT  TestA\npanic: gone\n\ngoroutine 7:\n", "panic: gone"),
        ("=== RUN   TestA\n    a_test.go:3: fine\nended\n", "ended"),
        ("", "exit code 2"),
    ],
    ids=["a test that says nothing", "a process that ends in another test", "a process that ends", "silence"],
)
def test_a_reason_is_what_the_failure_has_printed(printed: str, reason: str) -> None:
    assert Outcome(2, printed, 0.0).reason == reason


@pytest.mark.parametrize(
    ("code", "printed", "failed", "timed_out", "completed"),
    [
        (1, "=== RUN   TestA\n--- PASS: TestA (0s)\n=== RUN   TestB\n--- FAIL: TestB (0s)\n", ("TestB",), False, 2),
        (2, "=== RUN   TestA\n--- PASS: TestA (0s)\n=== RUN   TestB\npanic: x\n", ("TestB",), False, 1),
        (2, "=== RUN   TestA\npanic: test timed out after 9s\n", ("TestA",), True, 0),
        (-9, "", (), True, None),
        (None, "", (), True, None),
    ],
)
def test_an_outcome_names_the_tests_that_failed_or_had_begun(
    code: int | None, printed: str, failed: Tests, timed_out: bool, completed: int | None
) -> None:
    outcome = Outcome(code, printed, 0.0)
    assert (outcome.failed, outcome.timed_out, outcome.tests_completed) == (failed, timed_out, completed)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"func TestA(t *testing.T) {}", ("-test.v", "-test.timeout=0")),
        (b"if testing.Verbose() {", ("-test.timeout=0",)),
        (b'flag.Lookup("test.v")', ("-test.timeout=0",)),
        (b"deadline, ok := t.Deadline()", ("-test.v", "-test.timeout=10m")),
    ],
)
def test_tests_that_ask_how_they_run_run_as_with_go_test(text: bytes, expected: Tests) -> None:
    assert modes([b"", text]) == expected


@pytest.mark.parametrize(
    ("body", "goes_on"),
    [
        ("{ os.Exit(m.Run()) }", False),
        ("{\n\tsetUp()\n\tos.Exit(m.Run())\n}", False),
        ("{\n\tcode := m.Run()\n\tos.Exit(code)\n}", True),
        ("{\n\tdefer tearDown()\n\tm.Run()\n}", True),
        ("{ goleak.VerifyTestMain(m) }", True),
    ],
)
def test_a_main_function_of_tests_that_ends_with_them_runs_no_code_after_them(body: str, goes_on: bool) -> None:
    text = f"package a\n\nfunc TestMain(m *testing.M) {body}\n\nfunc sum(m int) int {{\n\treturn m\n}}\n"
    assert goes_on_after_tests(text.encode()) is goes_on


def test_the_suite_has_its_own_options_and_leaves_out_what_fails_without_a_mutant() -> None:
    red = suite(
        failing=(FailingTest("TestRed", ""),),
        options=("-test.short",),
        modes=("-test.v",),
        seconds=2.0,
        cpu_seconds=0.5,
    )
    assert red.arguments()[2:] == ["-test.v", "-test.short", "-test.skip=^(TestRed)$"]
    assert red.arguments(("TestF", "Test.G"))[2:] == [
        "-test.v",
        "-test.short",
        f"-test.run={only(('TestF', 'Test.G'))}",
    ]
    assert only(("TestF", "Test.G")) == r"^(TestF|Test\.G)$"
    assert red.limits == (30.0, 10)


def test_how_gremlins_and_goflags_want_tests_to_run_is_read() -> None:
    measured = ["test", "-tags", "slow", "-cover", "-coverpkg", "m/...", "./..."]
    options = Options.of_arguments(measured)
    assert options == Options("slow", "m/...", everything=True)
    assert options.for_builds == ("-tags=slow",)
    assert options.for_tests == ("-tags=slow", "-ldflags=-s -w")
    flagged = options.with_flags("-short -mod=mod --parallel=1 '-ldflags=-X a=b'")
    assert (flagged.for_runs, flagged.for_tests) == (("-test.short", "-test.parallel=1"), ("-tags=slow",))
    assert Options().for_builds == ()


def test_files_of_other_modules_and_of_no_build_are_left_out(tmp_path: Path) -> None:
    paths = (
        "a.go",
        "a_test.go",
        "b/b.go",
        "vendor/c.go",
        "b/testdata/d.go",
        "_e/e.go",
        ".f/f.go",
        "g/go.mod",
        "g/h/g.go",
    )
    root = written(tmp_path, dict.fromkeys(paths, ""))
    assert sorted(go_files(root)) == ["a.go", "b/b.go"]


def test_mutants_belong_to_the_package_that_builds_their_file() -> None:
    outside = evolve(mutant(), path="f/other.go")
    assert by_package([PACKAGE], [mutant(), outside]) == {PACKAGE: [mutant()], None: [outside]}
    assert by_package([evolve(PACKAGE, directory=".")], [evolve(mutant(), path="f.go")]).keys() == {
        evolve(PACKAGE, directory=".")
    }


LISTED = (
    {"ImportPath": "os/exec", "Dir": "/go/src/os/exec", "Standard": True, "DepOnly": True},
    {
        "ImportPath": "m/f",
        "Name": "f",
        "Dir": "f",
        "GoFiles": ["f.go"],
        "TestGoFiles": ["f_test.go"],
        "Imports": ["m/g"],
    },
    {
        "ImportPath": "m/g",
        "Name": "g",
        "Dir": "g",
        "GoFiles": ["g.go"],
        "XTestImports": ["os/exec"],
        "IgnoredGoFiles": ["run.go"],
    },
    {"ImportPath": "m/f.test", "Name": "main", "Dir": "f", "GoFiles": ["/tmp/b001/_testmain.go"]},
    {"ImportPath": "x.org/dep", "Dir": "/elsewhere/dep", "DepOnly": True, "Module": {"Dir": "/elsewhere"}},
    {"ImportPath": "y.org/dep", "Dir": "/cache/y@v1", "DepOnly": True, "Module": {"Dir": "/cache/y@v1"}},
)


def scripted_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listed: Sequence[Mapping[str, Any]]) -> Go:
    """A module, and a `go` that prints what it lists."""
    root = written(tmp_path / "module", {"f/f.go": SOURCE})
    here = [{**each, "Dir": str(root / each["Dir"])} if "Dir" in each else each for each in listed]
    values = "\n".join(json.dumps(each, indent=1) for each in here)
    script = f"case $1 in env) printf '%s\\n' -mod=mod /w/go.work /cache;; *) cat <<'VALUES'\n{values}\nVALUES\nesac"
    program(tmp_path / "bin" / "go", script)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    return Go(root)


async def test_packages_are_those_of_the_module_with_what_their_tests_need(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = await scripted_go(tmp_path, monkeypatch, LISTED).listed("-tags=slow")
    f, g = listed.packages
    assert (f.path, f.directory, f.files, f.has_tests, f.imports) == ("m/f", "f", ("f.go",), True, frozenset({"m/g"}))
    assert (g.has_tests, g.starts_programs, g.ignored) == (False, True, ("run.go",))
    assert not f.starts_programs
    assert (listed.outside, listed.workspace, listed.flags) == ((Path("/elsewhere"),), Path("/w/go.work"), "-mod=mod")


@pytest.mark.parametrize(
    ("reason", "remedy"),
    [
        ("current directory is contained in a module that is not one of those of go.work", "run `go work use .` there"),
        ("no required module provides it", "make `go list ./...` work there"),
    ],
)
async def test_a_module_that_go_can_not_list_is_an_error_that_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reason: str, remedy: str
) -> None:
    go = scripted_go(tmp_path, monkeypatch, [{"ImportPath": "./...", "Error": {"Err": reason}}])
    with pytest.raises(ToolError, match="go finds no packages in") as caught:
        await go.listed()
    assert remedy in str(caught.value)


COMPILER = """for argument; do
    case $argument in
    -overlay=*) text=$(dirname "${argument#-overlay=}")/0.go;;
    -gcflags=*) names=1;;
    esac
    [ "$previous" != -o ] || directory=$argument
    previous=$argument
done
if grep -qw 2 "$text"; then
    [ -z "$names" ] || echo "./gremlin_2.go:4:12: undefined: n" >&2
    exit 1
fi
touch "$directory/f.test"
"""


@frozen
class Combined:
    """In place of our program for Go sources: each mutant is a file of its own."""

    async def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        return {"combine": [" ".join(str(each["number"]) for each in file["mutants"]) for file in request["combine"]]}


async def test_mutants_that_the_compiler_names_are_left_out_of_a_binary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second build names the refused one; the third has the others."""
    go = scripted_go(tmp_path, monkeypatch, [])
    program(tmp_path / "bin" / "go", COMPILER)
    source: Any = Combined()
    (tmp_path / "private").mkdir()
    binaries = MutatedBinaries(go, source, Options(), tmp_path / "private", "")
    three = [mutant(text=text) for text in "-*/"]
    binary, refused = await binaries.together(PACKAGE, PACKAGE, three)
    assert refused == [Refused(three[1], "undefined: n")]
    assert binary is not None
    assert binary.mutants == {1: three[0], 3: three[2]}
    assert binary.file.name == "f.test"


async def test_a_go_that_is_killed_while_it_builds_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where memory is short: it says nothing."""
    go = scripted_go(tmp_path, monkeypatch, [])
    program(tmp_path / "bin" / "go", "kill -9 $$")
    source: Any = Combined()
    with pytest.raises(ToolError, match=r"go can't build f/f\.go with a mutant: killed by SIGKILL"):
        await MutatedBinaries(go, source, Options(), tmp_path, "").alone(PACKAGE, mutant())


def test_binaries_are_shared_by_some_mutants_as_far_as_they_do_not_grow_too_much(root: Path) -> None:
    binaries = MutatedBinaries(Go(root), Combined(), Options(), root, "")  # type: ignore[arg-type]
    small, large = mutant(), mutant(function=(0, MAX_ADDED))
    assert binaries.groups(PACKAGE, [small] * 3) == ([], [small] * 3)
    assert binaries.groups(PACKAGE, [small] * 4) == ([[small] * 4], [])
    assert binaries.groups(PACKAGE, [small, large, small, large]) == ([[small], [large], [small], [large]], [])
    alone = mutant(alone=True)
    assert binaries.groups(PACKAGE, [small] * 4 + [alone]) == ([[small] * 4], [alone])
    (root / "f/f.go").write_text("package f\n\nvar _ = runtime.Caller(0)\n")
    assert binaries.groups(PACKAGE, [small] * 4) == ([], [small] * 4)
