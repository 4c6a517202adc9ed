"""gremlins on modules as real projects have them: in a workspace, with C, TestMain, tags, vendored, and with processes."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from msp_bridge.adapters.gremlins import binaries
from msp_bridge.adapters.gremlins.go import Go
from support.files import written
from support.go_trees import PROGRAMS, adapter_on, discovered, key, needs_gremlins, results_of
from support.projects import copied

from msp_bridge.adapter import BaselineError, FailingTest, Result, Status, ToolError
from msp_bridge.testing import Oracle

pytestmark = [needs_gremlins, pytest.mark.usefixtures("go_programs")]
APP = {
    "14 ARITHMETIC_BASE +": Status.KILLED,
    "17 ARITHMETIC_BASE -": Status.KILLED,
    "21 CONDITIONALS_BOUNDARY >=": Status.SURVIVED,
    "21 CONDITIONALS_NEGATION <=": Status.KILLED,
    "6 ARITHMETIC_BASE -": Status.KILLED,  # with a tag
    "7 ARITHMETIC_BASE -": Status.SURVIVED,  # in a file with C
}

COPIED = "31 ARITHMETIC_BASE +"  # in a process of a copy of the test binary, by another name
TILL = {
    "13 CONDITIONALS_NEGATION ==": Status.KILLED,  # in a process of the test binary, with an environment of its own
    "14 ARITHMETIC_BASE +": Status.KILLED,  # in a process of `go run`, and nowhere else
    "5 ARITHMETIC_BASE +": Status.KILLED,  # there, in a file that no package has
    "19 ARITHMETIC_BASE -": Status.KILLED,
    "21 ARITHMETIC_BASE /": Status.KILLED,
    "23 ARITHMETIC_BASE -": Status.NO_COVERAGE,
    "26 CONDITIONALS_BOUNDARY >=": Status.KILLED,  # where a line of the log names the file
    "26 CONDITIONALS_NEGATION <=": Status.KILLED,
    COPIED: Status.KILLED,
}
# The rate is checked when all tests are done and their coverage is written; the program of the tests has no `main`.
AFTER = {
    "go.mod": "module example.com/after\n\ngo 1.21\n",
    "rate.go": 'package main\n\nimport "os"\n\nfunc rate() int { return 2 - 1 }\n\n'
    "func spare() int { return 2 * 1 }\n\nfunc main() { os.Exit(2 * 4) }\n",
    "rate_test.go": """package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

var built string

func TestMain(m *testing.M) {
	directory, _ := os.MkdirTemp("", "")
	built = filepath.Join(directory, "built")
	if exec.Command("go", "build", "-o", built, ".").Run() != nil {
		os.Exit(2)
	}
	code := m.Run()
	if rate() != 1 {
		code = 3
	}
	os.Exit(code)
}

func TestExitCode(t *testing.T) {
	command := exec.Command(built)
	command.Run()
	if command.ProcessState.ExitCode() != 8 {
		t.Fatal(command.ProcessState)
	}
}
""",
}
STARTED = """package started

import "os/exec"

func Command(name string, arguments ...string) *exec.Cmd { return exec.Command(name, arguments...) }
"""
# Real ones count allocations, of which coverage makes some.
SKIPPED_WITH_COVERAGE = {
    "go.mod": "module example.com/skipped\n\ngo 1.21\n",
    "rate.go": "package rate\n\nfunc rate() int { return 2 / 2 }\n\nfunc spare() int { return 2 * 1 }\n",
    "rate_test.go": """package rate

import "testing"

func TestRate(t *testing.T) {
	if testing.CoverMode() != "" {
		t.Skip("with coverage")
	}
	if rate() != 1 {
		t.Fatal()
	}
}
""",
}
# What the long test alone would kill has no coverage where GOFLAGS leaves it out.
SHORT = {
    "go.mod": "module example.com/short\n\ngo 1.21\n",
    "rate.go": "package rate\n\nfunc rate() int { return 2 + 2 }\n\nfunc spare() int { return 2 * 1 }\n",
    "rate_test.go": """package rate

import "testing"

func TestRate(t *testing.T) {
	if rate() != 4 {
		t.Fatal()
	}
}

func TestLong(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	if spare() != 2 {
		t.Fatal()
	}
}
""",
}
ASKING = {
    **SHORT,
    "rate.go": SHORT["rate.go"].replace("2 * 1", "2 * 3"),
    "rate_test.go": """package rate

import (
	"os"
	"testing"
)

func TestRate(t *testing.T) {
	if rate() != 4 && testing.Verbose() {
		t.Fatal()
	}
}

func TestSpare(t *testing.T) {
	if _, ok := t.Deadline(); ok && spare() != 6 {
		os.Exit(3)
	}
}
""",
}
# Code and tests look at the name of the test binary, as cobra does, and at the variable of the directory.
NAMED = {
    "go.mod": "module example.com/names/v2\n\ngo 1.21\n",
    "sub/sub.go": """package sub

import (
	"os"
	"path/filepath"
)

func Doubled(n int) int {
	if filepath.Base(os.Args[0]) != "sub.test" {
		n++
	}
	return n * 2
}
""",
    "sub/sub_test.go": """package sub

import (
	"os"
	"testing"
)

func TestDoubled(t *testing.T) {
	if Doubled(2) != 4 || Doubled(0) != 0 {
		t.Fatal(os.Args[0])
	}
}

func TestDirectory(t *testing.T) {
	if directory, _ := os.Getwd(); directory != os.Getenv("PWD") {
		t.Fatal(os.Getenv("PWD"))
	}
}
""",
}
NAMED["names.go"] = NAMED["sub/sub.go"].replace("package sub", "package names").replace("sub.test", "names.test")
NAMED["names_test.go"] = NAMED["sub/sub_test.go"].replace("package sub", "package names")
OLDER = "v0.5.0"
UNKNOWN_TO_OLDER = "14 ARITHMETIC_BASE +"  # another type of the same token is switched off


async def all_results(root: Path, *paths: str) -> dict[str, Result]:
    """Results of the mutants of a project of which there is nothing to be said, by "line mutator replacement"."""
    async with adapter_on(root) as adapter:
        mutants, _ = await discovered(adapter, *paths)
        results, notices = await results_of(adapter, mutants)
    assert notices == []
    return results


@pytest.fixture
def older(go_programs: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An older gremlins is the first on PATH."""
    package = f"github.com/go-gremlins/gremlins/cmd/gremlins@{OLDER}"
    env = os.environ | {"PATH": PROGRAMS, "GOBIN": str(tmp_path / "older"), "GOFLAGS": "-buildvcs=false"}
    done = subprocess.run(["go", "install", package], env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"gremlins is not installed: go can't get {OLDER}: {done.stderr[-300:]}")
    monkeypatch.setenv("PATH", f"{tmp_path / 'older'}{os.pathsep}{PROGRAMS}")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return copied("go_workspace", tmp_path)


async def test_each_mutant_of_a_workspaces_module_gets_its_verdict_and_edits_of_other_modules_count(
    workspace: Path,
) -> None:
    async with adapter_on(workspace / "app") as adapter:
        mutants, notices = await discovered(adapter)
        results, failing = await results_of(adapter, mutants)
        assert notices == failing == []
        assert {key: result.status for key, result in results.items()} == APP
        before = await adapter.surroundings()
        assert before is not None
        assert before.trees == (workspace / "lib",)
        library = workspace / "lib" / "lib.go"
        library.write_text(library.read_text("utf-8").replace("* 2", "* 3"), "utf-8")
        mutants = [each for each in mutants if key(each) == "21 CONDITIONALS_NEGATION <="]
        [notice] = (await results_of(adapter, mutants))[1]
        assert isinstance(notice, FailingTest)
        assert notice.test == "TestQuadruple"
        with (workspace / "go.work").open("a", encoding="utf-8") as file:
            file.write("\n// edited\n")
        assert await adapter.surroundings() != before


@pytest.mark.usefixtures("older")
async def test_mutants_of_an_older_gremlins_are_the_same_and_get_their_verdicts(workspace: Path) -> None:
    async with adapter_on(workspace / "app") as adapter:
        surroundings = await adapter.surroundings()
        mutants, _ = await discovered(adapter)
        results, _ = await results_of(adapter, mutants)
    assert surroundings is not None
    assert any(OLDER in line for line in surroundings.values["gremlins"])
    assert {key: result.status for key, result in results.items()} | {UNKNOWN_TO_OLDER: Status.KILLED} == APP
    assert UNKNOWN_TO_OLDER not in results


async def test_a_module_that_the_user_is_in_by_a_link_has_its_packages(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """go names directories by PWD, where that is another name of the current one."""
    (tmp_path / "link").symlink_to(workspace)
    monkeypatch.setenv("PWD", str(tmp_path / "link" / "app"))
    assert "." in [package.directory for package in (await Go(workspace / "app").listed()).packages]


async def test_a_module_that_its_workspace_does_not_name_is_an_error_that_says_so(workspace: Path) -> None:
    async with adapter_on(workspace / "app" / "nested") as adapter:
        mutants, _ = await discovered(adapter)
        with pytest.raises(ToolError, match=r"does not contain modules listed in go\.work"):
            await results_of(adapter, mutants)
        [*_, finding] = [finding async for finding in adapter.diagnose()]
        assert not finding.good
        assert finding.remedy == "run `go work use .` there, or set GOWORK=off"


async def test_a_module_with_vendored_ones_has_verdicts_which_depend_on_nothing_outside(workspace: Path) -> None:
    root = workspace / "app"
    shutil.copytree(workspace / "lib", root / "vendor" / "example.test" / "lib")
    (workspace / "go.work").unlink()
    for directory in (workspace / "lib", root / "nested"):
        shutil.rmtree(directory)
    (root / "twice.go").unlink()
    test = root / "app_test.go"
    test.write_text(test.read_text("utf-8").partition("func TestTwice")[0], "utf-8")
    (root / "vendor" / "modules.txt").write_text(
        "# example.test/lib v0.0.0\n## explicit; go 1.21\nexample.test/lib\n", "utf-8"
    )
    async with adapter_on(root) as adapter:
        mutants, _ = await discovered(adapter)
        results, _ = await results_of(adapter, [each for each in mutants if each.path == "app.go"])
        surroundings = await adapter.surroundings()
    assert {key: result.status for key, result in results.items()} == {key: APP[key] for key in list(APP)[:4]}
    assert surroundings is not None
    assert surroundings.trees == ()


@pytest.mark.parametrize("starts_programs", [True, False])
async def test_what_runs_after_the_tests_and_in_programs_that_they_build_has_the_verdict_of_a_fresh_process(
    tmp_path: Path, starts_programs: bool
) -> None:
    root = written(tmp_path, AFTER)
    if not starts_programs:
        test = root / "rate_test.go"
        begin, end = "\tdirectory, _", "\tcode := m.Run"
        text = test.read_text("utf-8")
        text = text.partition(begin)[0] + end + text.partition(end)[2].partition("func TestExitCode")[0]
        test.write_text(
            text.replace('\t"os/exec"\n\t"path/filepath"\n', "") + "func TestNone(t *testing.T) {}\n", "utf-8"
        )
    for place in (root, *root.iterdir()):
        os.utime(place, (1e9, 1e9))  # of what is older than two seconds go keeps the result
    subprocess.run(["go", "test", "-vet=off", "."], cwd=root, check=True, capture_output=True)
    async with adapter_on(root) as adapter:
        mutants, _ = await discovered(adapter)
        results, _ = await results_of(adapter, mutants)
        oracle = await Oracle.of(root, await adapter.test_command() or ())
        fresh = {key: (await oracle.verdict_on(result)).status for key, result in results.items()}
    assert {key: result.status for key, result in results.items()} == {
        "5 ARITHMETIC_BASE +": Status.KILLED,
        "5 INVERT_NEGATIVES +": Status.KILLED,
        "7 ARITHMETIC_BASE /": Status.NO_COVERAGE,
        "9 ARITHMETIC_BASE /": Status.KILLED if starts_programs else Status.NO_COVERAGE,
    }
    assert {key for key, status in fresh.items() if status.detected} == {
        key for key, result in results.items() if result.status.detected
    }


async def test_programs_that_tests_start_by_another_package_count(tmp_path: Path) -> None:
    """So do those that start them by gexec and testscript."""
    begin, _, rest = AFTER["rate_test.go"].partition("\tcode := m.Run()")
    text = f"{begin}\tos.Exit(m.Run())\n}}\n\nfunc TestExitCode{rest.partition('func TestExitCode')[2]}"
    text = text.replace('"os/exec"', '"example.com/after/started"').replace("exec.Command", "started.Command")
    root = written(tmp_path, {**AFTER, "rate_test.go": text, "started/command.go": STARTED})
    async with adapter_on(root) as adapter:
        mutants, _ = await discovered(adapter, "rate.go")
        results, _ = await results_of(adapter, mutants)
    killed = {key for key, result in results.items() if result.status is Status.KILLED}
    assert (killed, len(results)) == ({"9 ARITHMETIC_BASE /"}, 4)


async def test_a_test_that_runs_only_without_coverage_kills_mutants(tmp_path: Path) -> None:
    root = written(tmp_path, SKIPPED_WITH_COVERAGE)
    async with adapter_on(root) as adapter:
        mutants, _ = await discovered(adapter)
        results, _ = await results_of(adapter, mutants)
    statuses = {key: result.status for key, result in results.items()}
    assert statuses == {"3 ARITHMETIC_BASE *": Status.KILLED, "5 ARITHMETIC_BASE /": Status.NO_COVERAGE}


@pytest.mark.parametrize("path", ["names.go", "sub/sub.go"])
@pytest.mark.parametrize("shared", [True, False])
async def test_a_test_binary_has_the_name_that_go_gives_it_and_its_directory_in_a_variable(
    tmp_path: Path, path: str, shared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shared:
        monkeypatch.setattr(binaries, "MIN_TOGETHER", 1)
    results = await all_results(written(tmp_path, NAMED), path)
    assert {key: result.status for key, result in results.items()} == {
        "9 CONDITIONALS_NEGATION ==": Status.KILLED,
        "10 INCREMENT_DECREMENT --": Status.NO_COVERAGE,
        "12 ARITHMETIC_BASE /": Status.KILLED,
    }


async def test_how_tests_run_is_what_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOFLAGS", "-short -buildvcs=false --parallel=1")
    results = await all_results(written(tmp_path, SHORT))
    statuses = {key: result.status for key, result in results.items()}
    assert statuses == {"3 ARITHMETIC_BASE -": Status.KILLED, "5 ARITHMETIC_BASE /": Status.NO_COVERAGE}


async def test_tests_meet_no_verbose_run_and_a_deadline(tmp_path: Path) -> None:
    results = await all_results(written(tmp_path, ASKING))
    statuses = {key: result.status for key, result in results.items()}
    assert statuses == {"3 ARITHMETIC_BASE -": Status.SURVIVED, "5 ARITHMETIC_BASE /": Status.KILLED}
    assert [result.tests_completed for result in results.values()] == [None, None]


async def test_fresh_processes_do_not_take_a_module_that_go_can_not_load_for_one_without_tests(workspace: Path) -> None:
    """Where nothing is isolated a copy lies elsewhere, without the workspace that names the module's other half."""
    async with adapter_on(workspace / "app") as adapter:
        command = await adapter.test_command() or ()
    with pytest.raises(BaselineError, match="fails in a fresh copy"):
        await Oracle.of(workspace / "app", command, isolated=False)


@pytest.mark.parametrize("isolation", ["on", "off"])
async def test_processes_that_tests_start_have_the_mutant(
    tmp_path: Path, isolation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if isolation == "off":
        monkeypatch.setenv("MSP_BRIDGE_ISOLATION", "off")
    async with adapter_on(copied("go_till", tmp_path)) as adapter:
        mutants, _ = await discovered(adapter)
        results, failing = await results_of(adapter, [mutant for mutant in mutants if key(mutant) in TILL])
    assert failing == []
    assert {key: result.status for key, result in results.items()} == TILL
    assert results[COPIED].covered_by == ("TestCopy",)
