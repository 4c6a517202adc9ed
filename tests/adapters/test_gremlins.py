"""gremlins through the bridge: every kind of mutant in a real module, with the real go and gremlins."""

import asyncio
import contextlib
import os
import shutil
from pathlib import Path

import pytest
from msp_bridge.adapters.gremlins import Gremlins
from msp_bridge.adapters.gremlins.binaries import MIN_TOGETHER
from support.environments import program
from support.files import written
from support.go_trees import PROGRAMS, adapter_on, discovered, key, needs_gremlins, results_of, shop

from msp_bridge.adapter import BaselineError, FailingTest, Mutant, Project, Result, Status, UnusableFile
from msp_bridge.source import SourceText
from msp_bridge.testing import Oracle, RunningProcesses, TreeState

pytestmark = [needs_gremlins, pytest.mark.usefixtures("go_programs")]
PRICE = {
    "7 ARITHMETIC_BASE /": Status.KILLED,  # at the start of the test binary
    "9 ARITHMETIC_BASE -": Status.COMPILE_ERROR,
    "13 CONDITIONALS_BOUNDARY <=": Status.KILLED,
    "13 CONDITIONALS_NEGATION >=": Status.KILLED,
    "16 ARITHMETIC_BASE /": Status.KILLED,
    "17 CONDITIONALS_BOUNDARY <=": Status.KILLED,
    "17 CONDITIONALS_NEGATION >=": Status.KILLED,
    "17 INCREMENT_DECREMENT --": Status.KILLED,
    "18 INVERT_ASSIGNMENTS +=": Status.KILLED,
    "24 CONDITIONALS_BOUNDARY >": Status.SURVIVED,
    "24 CONDITIONALS_NEGATION <": Status.KILLED,
    "27 ARITHMETIC_BASE -": Status.KILLED,
    "27 INVERT_BITWISE (product|mask)": Status.KILLED,
    "30 ARITHMETIC_BASE -": Status.COMPILE_ERROR,
    "38 ARITHMETIC_BASE -": Status.SURVIVED,
    "43 ARITHMETIC_BASE -": Status.SURVIVED,
    "44 CONDITIONALS_BOUNDARY <=": Status.KILLED,
    "44 CONDITIONALS_NEGATION >=": Status.KILLED,
    "44 INCREMENT_DECREMENT --": Status.KILLED,
    "52 CONDITIONALS_NEGATION ==": Status.SURVIVED,
    "57 ARITHMETIC_BASE +": Status.NO_COVERAGE,
    "57 INVERT_NEGATIVES +": Status.NO_COVERAGE,
    "59 ARITHMETIC_BASE -": Status.COMPILE_ERROR,
    "64 ARITHMETIC_BASE -": Status.KILLED,
}
FURTHER = ("9 ", "17 ", "38 ", "43 ", "44 ")  # lines with mutants like others, which the main ring leaves out
BUILT_ALONE = ("27 INVERT_BITWISE (product|mask)", "24 CONDITIONALS_BOUNDARY >", "30 ARITHMETIC_BASE -")
STOCK = {
    "10 INVERT_ASSIGNMENTS -=": Status.KILLED,
    "11 INVERT_ASSIGNMENTS +=": Status.KILLED,  # by a later test, which does not run it
    "20 CONDITIONALS_NEGATION !=": Status.KILLED,
    "29 CONDITIONALS_BOUNDARY <=": Status.KILLED,
    "29 CONDITIONALS_NEGATION >=": Status.KILLED,
    "30 INCREMENT_DECREMENT --": Status.TIMEOUT,
}
CHANCE = """package price

import (
	"os"
	"path/filepath"
	"testing"
)

// The first run of each binary with a mutant fails; of the measured one, none does.
func TestChance(t *testing.T) {
	Free(0)
	program, _ := os.Executable()
	if _, err := os.Stat(filepath.Join(filepath.Dir(filepath.Dir(program)), "msp-gremlin-measured")); err == nil {
		return
	}
	if os.Mkdir(program+".tried", 0700) == nil {
		t.Fatal("by chance")
	}
}
"""

WAITING = """case "$*" in
    "test -c "*" -cover "*)
        for second in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do [ -e {begun} ] || sleep 1; done
        [ -e {begun} ] || exit 1 ;;
    "test -c "*) touch {begun} ;;
esac
exec {go} "$@"
"""
LINKED = """package stock

import "testing"

var linked string

func TestLinked(t *testing.T) {
	if linked != "yes" {
		t.Fatal(linked)
	}
}
"""

# A note is said to come from the caller of Add.
NOTE = """package note

import (
	"log"
	"strings"
)

var notes = new(strings.Builder)
var logger = log.New(notes, "", log.Lshortfile)

func Add(count int) {
	if count > 0 && count < 100 {
		logger.Output(2, "added")
	}
}
"""
NOTE_TEST = """package note

import "testing"

func TestAdd(t *testing.T) {
	Add(1)
	if notes.String() != "note_test.go:6: added\\n" {
		t.Fatal(notes.String())
	}
}
"""
# Nothing that go's order of initialization knows leads from `sizes` to the method.
EARLY = """package early

import "encoding/json"

type size int

func (s *size) UnmarshalJSON(text []byte) error {
	*s = size(2*len(text) + 3*len(text) - 1)
	return nil
}

var sizes = func() (all []size) {
	json.Unmarshal([]byte("[1, 22]"), &all)
	return all
}()
"""
EARLY_TEST = """package early

import "testing"

func TestSizes(t *testing.T) {
	if sizes[1] != 9 {
		t.Fatal(sizes)
	}
}
"""

NUMBER = {
    "go.mod": "module example.test/number\n\ngo 1.24\n",
    "number.go": "package number\n\nfunc Less(n int) int {\n\tif n > 3 {\n\t\treturn n - 1\n\t}\n\treturn n\n}\n",
    "number_test.go": """package number

import (
	"os"
	"testing"
)

func TestLess(t *testing.T) {
	text, err := os.ReadFile("testdata/number.txt")
	if n := len(text); err != nil || Less(n) > n {
		t.Fatal(err)
	}
}
""",
}


def some(mutants: list[Mutant], *keys: str) -> list[Mutant]:
    """Those whose line, or line and mutator, is one of `keys`."""
    return [mutant for mutant in mutants if key(mutant).startswith(tuple(f"{each} " for each in keys))]


async def test_each_mutant_gets_the_verdict_of_a_fresh_process(tmp_path: Path, every_case: bool) -> None:
    root, running = shop(tmp_path), RunningProcesses()
    tree = TreeState.of(root)
    async with adapter_on(root) as adapter:
        mutants, notices = await discovered(adapter)
        for wanted in BUILT_ALONE:
            results, _ = await results_of(adapter, [mutant for mutant in mutants if key(mutant) == wanted])
            assert {key: result.status for key, result in results.items()} == {wanted: PRICE[wanted]}
        if not every_case:
            left_out = [each for each in mutants if each.path == "price/price.go" and key(each).startswith(FURTHER)]
            mutants = [mutant for mutant in mutants if mutant not in left_out]
        results, failing = await results_of(adapter, mutants)
        by_file = {
            path: {key(mutant): results[key(mutant)].status for mutant in mutants if mutant.path == path}
            for path in dict.fromkeys(mutant.path for mutant in mutants)
        }
    assert notices == failing == tree.differences(TreeState.of(root)) == await running.settled(0) == []
    price = {key: status for key, status in PRICE.items() if every_case or not key.startswith(FURTHER)}
    assert by_file.pop("price/price.go") == price
    assert by_file.pop("stock/stock.go") == STOCK
    assert {status for statuses in by_file.values() for status in statuses.values()} == {Status.NO_COVERAGE}
    assert list(by_file) == ["internal/text/text.go", "price/price_windows.go"]
    assert results["11 INVERT_ASSIGNMENTS +="].killed_by == ("TestNothingIsLeft",)
    assert results["24 CONDITIONALS_BOUNDARY >"].covered_by == ("TestFree",)
    assert results["7 ARITHMETIC_BASE /"].static


async def test_tags_and_options_of_the_linker_in_the_environment_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = shop(tmp_path)
    for name in ("stock.go", "stock_test.go"):
        file = root / "stock" / name
        file.write_text("//go:build wanted\n\n" + file.read_text("utf-8"), "utf-8")
    (root / "stock" / "linked_test.go").write_text(LINKED, "utf-8")
    monkeypatch.setenv("GOFLAGS", "-tags=wanted -buildvcs=false -ldflags=-X=example.test/shop/stock.linked=yes")
    async with adapter_on(root) as adapter:
        mutants, _ = await discovered(adapter, "stock/stock.go")
        results, notices = await results_of(adapter, [each for each in mutants if each.location.start.line == 22])
    assert notices == []
    assert {key: result.status for key, result in results.items()} == {"22 CONDITIONALS_NEGATION !=": Status.KILLED}


@pytest.mark.parametrize(
    ("name", "source", "test", "not_killed"),
    [
        (
            "note",
            NOTE,
            NOTE_TEST,
            {"12 CONDITIONALS_BOUNDARY >=", "12 CONDITIONALS_BOUNDARY <=", "12 INVERT_LOGICAL ||"},
        ),
        ("early", EARLY, EARLY_TEST, {"13 INVERT_BITWISE |"}),
    ],
)
async def test_mutants_in_one_binary_get_the_verdicts_of_binaries_of_their_own(
    tmp_path: Path, name: str, source: str, test: str, not_killed: set[str]
) -> None:
    root = shop(tmp_path)
    (root / name).mkdir()
    (root / name / f"{name}.go").write_text(source, "utf-8")
    (root / name / f"{name}_test.go").write_text(test, "utf-8")
    async with adapter_on(root) as adapter:
        mutants, _ = await discovered(adapter, f"{name}/{name}.go")
        assert len(mutants) >= MIN_TOGETHER
        results, _ = await results_of(adapter, mutants)
    assert {key for key, result in results.items() if result.status is not Status.KILLED} == not_killed


async def test_the_replacement_keeps_the_operands_of_the_tree(tmp_path: Path) -> None:
    root = shop(tmp_path)
    source = root / "price" / "price.go"
    source.write_text("package price\n\nfunc f(a, b, c bool) bool { return a || /* é𝒳 */ b || c }\n", "utf-8")
    async with adapter_on(root) as adapter:
        mutants, _ = await discovered(adapter, "price/price.go")
        text = SourceText.read(source)
    assert [text.apply(mutant).split("\n")[2] for mutant in mutants] == [
        "func f(a, b, c bool) bool { return a && /* é𝒳 */ b || c }",
        "func f(a, b, c bool) bool { return (a || /* é𝒳 */ b) && c }",
    ]


async def test_a_file_that_is_no_go_is_named_and_the_others_have_their_mutants(tmp_path: Path) -> None:
    root = shop(tmp_path)
    (root / "internal" / "text" / "text.go").write_text("package text\nfunc {\n", "utf-8")
    async with adapter_on(root) as adapter:
        mutants, notices = await discovered(adapter)
    assert {mutant.path for mutant in mutants} == {"price/price.go", "price/price_windows.go", "stock/stock.go"}
    [notice] = notices
    assert isinstance(notice, UnusableFile)
    assert notice.path == "internal/text/text.go"
    assert "2:6: expected 'IDENT'" in notice.problem


async def test_a_file_alone_that_has_no_mutants_is_no_error(tmp_path: Path) -> None:
    root = shop(tmp_path)
    (root / "stock" / "shelf.go").write_text("package stock\n\ntype Shelf []int\n", "utf-8")
    async with adapter_on(root) as adapter:
        assert await discovered(adapter, "stock/shelf.go") == ([], [])


async def test_a_test_that_fails_without_a_mutant_is_named_and_one_that_fails_by_chance_kills_nothing(
    tmp_path: Path,
) -> None:
    root = shop(tmp_path)
    (root / "price" / "red_test.go").write_text(
        'package price\n\nimport "testing"\n\nfunc TestLog(t *testing.T) { t.Log("passes") }\n'
        'func TestRed(t *testing.T) { t.Error("red") }\n',
        "utf-8",
    )
    (root / "price" / "chance_test.go").write_text(CHANCE, "utf-8")
    async with adapter_on(root) as adapter:
        mutants, _ = await discovered(adapter, "price/price.go")
        results, notices = await results_of(adapter, some(mutants, "24", "30", "38"))
    assert {key: result.status for key, result in results.items()} == {
        key: status for key, status in PRICE.items() if key.startswith(("24", "30", "38"))
    }
    [notice] = notices
    assert isinstance(notice, FailingTest)
    assert notice.test == "TestRed"
    assert notice.output == "red_test.go:6: red"


async def test_failing_tests_are_named_whose_package_prints_a_lot(tmp_path: Path) -> None:
    root = shop(tmp_path)
    (root / "price" / "a_loud_test.go").write_text(
        'package price\n\nimport "testing"\n\n'
        "func TestA(t *testing.T) { loud(t) }\nfunc TestRed(t *testing.T) { t.Fail() }\n"
        "func TestZ(t *testing.T) { loud(t) }\n"
        'func loud(t *testing.T) {\n\tfor i := 0; i < 9999; i++ {\n\t\tt.Log("some words that make a line of a test long enough")\n\t}\n}\n',
        "utf-8",
    )
    async with adapter_on(root) as adapter:
        mutants, _ = await discovered(adapter, "price/price.go")
        results, notices = await results_of(adapter, some(mutants, "24"))
    assert notices == [FailingTest("TestRed", "TestRed failed")]
    assert {key: result.status for key, result in results.items()} == {
        key: status for key, status in PRICE.items() if key.startswith("24")
    }


@pytest.mark.parametrize("everything", [False, True])
async def test_fresh_processes_leave_out_tests_that_fail_without_a_mutant(tmp_path: Path, everything: bool) -> None:
    root = shop(tmp_path)
    (root / "price" / "red_test.go").write_text(
        'package price\n\nimport "testing"\n\nfunc TestRed(t *testing.T) { t.Fail() }\n', "utf-8"
    )
    if everything:
        (root / ".gremlins.yaml").write_text("unleash:\n  integration: true\n", "utf-8")
    async with adapter_on(root) as adapter:
        mutants, _ = await discovered(adapter, "price/price.go")
        results, _ = await results_of(adapter, some(mutants, "24"))
        oracle = await Oracle.of(root, await adapter.test_command() or (), isolated=False)
    for result in results.values():
        assert (await oracle.verdict_on(result)).status.detected == result.status.detected
    assert {result.status.detected for result in results.values()} == {True, False}


async def test_a_package_without_tests_that_does_not_compile_has_no_coverage(tmp_path: Path) -> None:
    root = shop(tmp_path)
    source = root / "internal" / "text" / "text.go"
    source.write_text(source.read_text("utf-8") + '\nvar wrong int = "wrong"\n', "utf-8")
    async with adapter_on(root) as adapter:
        mutants, _ = await discovered(adapter, "internal/text/text.go")
        results, _ = await results_of(adapter, mutants)
    assert {result.status for result in results.values()} == {Status.NO_COVERAGE}


@pytest.mark.parametrize(
    "test", ['func TestRed(t *testing.T) { t.Error("red") }', "func TestRed(t *testing.T) { return 1 }"]
)
async def test_a_package_whose_tests_fail_is_an_error_that_names_them(tmp_path: Path, test: str) -> None:
    root = shop(tmp_path)
    for file in (root / "stock").glob("*_test.go"):
        file.unlink()
    (root / "stock" / "red_test.go").write_text(f'package stock\n\nimport "testing"\n\n{test}\n', "utf-8")
    async with adapter_on(root) as adapter:
        mutants, _ = await discovered(adapter, "stock/stock.go")
        with pytest.raises(BaselineError, match=r"the tests of example.test/shop/stock .*red") as caught:
            await results_of(adapter, mutants[:1])  # which is being built meanwhile
    assert caught.value.problem.count("red_test.go") <= 1
    assert caught.value.remedy == "make `go test ./stock` pass first"


async def test_the_configuration_and_the_packages_that_need_a_file_count(tmp_path: Path) -> None:
    root = shop(tmp_path)
    (root / ".gremlins.yaml").write_text("unleash:\n  integration: true\n  exclude-files: [price]\n", "utf-8")
    (root / "stock" / "needs_text_test.go").write_text(
        'package stock_test\n\nimport (\n\t"testing"\n\n\t"example.test/shop/internal/text"\n)\n\n'
        'func TestLonger(t *testing.T) {\n\tif text.Longer("a", "bb") {\n\t\tt.Fatal()\n\t}\n}\n',
        "utf-8",
    )
    async with adapter_on(root) as adapter:
        mutants, _ = await discovered(adapter)
        results, _ = await results_of(adapter, [mutant for mutant in mutants if mutant.path.startswith("internal")])
    assert {mutant.path for mutant in mutants} == {"internal/text/text.go", "stock/stock.go"}
    assert {key: result.status for key, result in results.items()} == {
        "5 CONDITIONALS_BOUNDARY >=": Status.SURVIVED,
        "5 CONDITIONALS_NEGATION <=": Status.KILLED,
    }


async def test_an_edit_between_the_listing_and_the_test_gives_no_result(tmp_path: Path) -> None:
    root = shop(tmp_path)
    async with contextlib.aclosing(Gremlins(Project(root=root, cache=tmp_path / "cache", jobs=2))) as adapter:
        mutants, _ = await discovered(adapter)
        source = root / "price" / "price.go"
        source.write_text(source.read_text("utf-8") + "\n// edited\n", "utf-8")
        mutants = [mutant for mutant in mutants if mutant.path != "stock/stock.go" or mutant in some(mutants, "20")]
        results, _ = await results_of(adapter, mutants)
    assert {result.mutant.path for result in results.values()}.isdisjoint({"price/price.go"})
    assert len(results) == len([mutant for mutant in mutants if mutant.path != "price/price.go"]) > 1


async def test_a_mutant_is_built_while_its_tests_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs, go = tmp_path / "programs", shutil.which("go", path=PROGRAMS)
    program(programs / "go", WAITING.format(begun=tmp_path / "begun", go=go))
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{PROGRAMS}")
    async with adapter_on(shop(tmp_path)) as adapter:
        mutants = some((await discovered(adapter, "price/price.go"))[0], "24 CONDITIONALS_NEGATION")
        results, _ = await results_of(adapter, mutants)
        assert [result.status for result in results.values()] == [Status.KILLED]


async def test_requests_that_begin_together_share_a_measurement_which_goes_with_the_files(tmp_path: Path) -> None:
    root = shop(tmp_path)
    async with contextlib.aclosing(Gremlins(Project(root=root, cache=tmp_path / "cache", jobs=2))) as adapter:
        mutants = some((await discovered(adapter, "price/price.go"))[0], "24", "30")
        for results, _ in await asyncio.gather(results_of(adapter, mutants), results_of(adapter, mutants)):
            assert {key: result.status for key, result in results.items()} == {
                key(each): PRICE[key(each)] for each in mutants
            }
        directory = adapter._module.runner.directory
        before = set(directory.iterdir())
        assert len(before) == 1
        (root / "price" / "price_test.go").touch()
        await results_of(adapter, mutants[:1])
        now = set(directory.iterdir())
        assert len(now) == 1
        assert now.isdisjoint(before)
    assert not directory.exists()


async def test_data_outside_of_the_module_to_which_a_link_leads_counts(tmp_path: Path) -> None:
    root, data = written(tmp_path / "number", NUMBER), written(tmp_path / "data", {"number.txt": "1"})
    (root / "testdata").symlink_to(data)
    async with adapter_on(root) as adapter:
        mutants = some((await discovered(adapter, "number.go"))[0], "5")
        for text, wanted in (("1", Status.NO_COVERAGE), ("12345", Status.KILLED)):
            (data / "number.txt").write_text(text)
            results, _ = await results_of(adapter, mutants)
            assert {result.status for result in results.values()} == {wanted}


async def test_a_cancel_ends_an_endless_mutant_and_the_next_request_works(tmp_path: Path) -> None:
    running = RunningProcesses()
    async with adapter_on(shop(tmp_path)) as adapter:
        mutants = some((await discovered(adapter, "stock/stock.go"))[0], "20", "30")
        async with contextlib.aclosing(adapter.test(mutants)) as items:
            while not isinstance(await anext(items), Result):
                pass
            waiting = asyncio.create_task(anext(items))
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.wait([waiting])
        results, _ = await results_of(adapter, mutants[:1])
        assert [result.status for result in results.values()] == [Status.KILLED]
    assert await running.settled(0) == []


async def test_what_verdicts_depend_on_are_versions_settings_and_modules_beside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = shop(tmp_path)
    beside = tmp_path / "beside"
    beside.mkdir()
    (beside / "go.mod").write_text("module example.test/beside\n\ngo 1.21\n", "utf-8")
    (beside / "beside.go").write_text("package beside\n", "utf-8")
    async with adapter_on(root) as adapter:
        first = await adapter.surroundings()
        assert first is not None
        assert first.trees == ()
        assert any("go-gremlins" in line for line in first.values["gremlins"])
        monkeypatch.setenv("GOFLAGS", "-tags=other -buildvcs=false")
        assert await adapter.surroundings() != first
        monkeypatch.delenv("GOFLAGS")
        monkeypatch.setenv("GREMLINS_UNLEASH_TAGS", "strict")
        await discovered(adapter, "price/price.go")
        assert await adapter.surroundings() != first
    with (root / "go.mod").open("a", encoding="utf-8") as file:
        file.write("\nrequire example.test/beside v0.0.0\n\nreplace example.test/beside => ../beside\n")
    (root / "stock" / "needs_beside.go").write_text('package stock\n\nimport _ "example.test/beside"\n', "utf-8")
    async with adapter_on(root) as adapter:
        now = await adapter.surroundings()
        assert now is not None
        assert now.trees == (beside,)


async def test_doctor_names_versions_and_mutants(tmp_path: Path) -> None:
    async with adapter_on(shop(tmp_path)) as adapter:
        findings = [finding async for finding in adapter.diagnose()]
    assert [finding.subject for finding in findings if finding.good] == ["go", "gremlins", "mutants", "isolation"]
