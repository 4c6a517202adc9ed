"""What the adapter makes of what cargo-mutants 27.1.0 really printed for examples/shop-rust (recorded in rust_recorded)."""

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from msp_bridge.adapters.cargo_mutants.listing import Sources
from msp_bridge.adapters.cargo_mutants.outcomes import Outcomes
from support.projects import EXAMPLES, PROJECTS

from msp_bridge.adapter import Mutant, Result, Status
from msp_bridge.source import SourceText

ROOT, RECORDED = EXAMPLES / "shop-rust", PROJECTS / "rust_recorded"
OF_NEXTEST = """\
    Starting 4 tests across 1 binary
        PASS [   0.028s] (1/4) shop tests::an_apple_is_cheap
        FAIL [   0.290s] (2/4) shop tests::three_cost_thrice_as_much
  stdout ───

    running 1 test

  stderr ───

    thread 'tests::three_cost_thrice_as_much' (12002) panicked at shop/src/lib.rs:20:9:
    assertion `left == right` failed
      left: 10
     right: 6
    stack backtrace:
       0: __rustc::rust_begin_unwind

  Cancelling due to test failure: 1 test still running
     SIGABRT [   0.312s] shop tests::ends
────────────
     Summary [   0.309s] 3/4 tests run: 1 passed, 2 failed, 0 skipped
        FAIL [   0.290s] (2/4) shop tests::three_cost_thrice_as_much
error: test run failed
"""  # shortened, with a line as an older version has it
LISTED: list[dict[str, Any]] = json.loads((RECORDED / "list.json").read_text("utf-8"))
MARKER = " /* ~ changed by cargo-mutants ~ */"


def mutant_of(fields: dict[str, Any]) -> Mutant:
    mutant = Sources(ROOT, ROOT).mutant(fields, fields["name"])
    assert mutant is not None
    return mutant


@pytest.mark.parametrize("fields", LISTED, ids=[fields["name"] for fields in LISTED])
def test_a_mutant_gives_the_file_that_cargo_mutants_tests(fields: dict[str, Any]) -> None:
    mutant = mutant_of(fields)
    source = SourceText.read(ROOT / mutant.path)
    end = source.offset(mutant.location.end)
    mutated = source.apply(mutant).replace("\r\n", "\n")
    after = len(source.text[end:].replace("\r\n", "\n"))
    ours = (mutated[: len(mutated) - after] + MARKER + mutated[len(mutated) - after :]).split("\n")
    theirs = [line[1:] for line in fields["diff"].split("\n")[3:] if line[:1] in (" ", "+")]
    start = int(fields["diff"].split("\n")[2].split("+")[1].split(",")[0]) - 1
    assert [line.removeprefix("\ufeff") for line in theirs] == ours[start : start + len(theirs)]


def test_names_are_those_of_the_list() -> None:
    names = (RECORDED / "list.txt").read_text("utf-8").splitlines()
    assert [mutant_of(fields).handle.names[0] for fields in LISTED] == names


def test_mutants_say_what_they_do() -> None:
    mutant = mutant_of(next(fields for fields in LISTED if "4:28: replace - with +" in fields["name"]))
    assert (mutant.path, mutant.mutator, mutant.replacement) == ("shop/src/lib.rs", "BinaryOperator", "+")
    assert mutant.description == "replace - with + in total"


DUE = [mutant_of(fields) for fields in LISTED]


def results() -> dict[str, Result]:
    found = Outcomes(RECORDED / "mutants.out", DUE).new()
    return {result.mutant.handle.names[0]: result for result in found}


def test_every_outcome_is_a_result_of_a_listed_mutant() -> None:
    counts = Counter(result.status for result in results().values())
    assert counts == {Status.KILLED: 27, Status.SURVIVED: 10, Status.COMPILE_ERROR: 1, Status.TIMEOUT: 2}
    assert {result.mutant for result in results().values()} == {mutant_of(fields) for fields in LISTED}


def test_results_have_the_details_of_the_logs() -> None:
    by_name = results()
    killed = by_name["shop/src/lib.rs:4:28: replace - with + in total"]
    assert killed.killed_by == ("tests::three_cost_thrice_as_much",)
    assert killed.status_reason == "assertion `left == right` failed\n  left: 10\n right: 6"
    assert killed.tests_completed == 2
    assert killed.duration is not None
    assert 0 < killed.duration < 5000
    survived = by_name["shop/src/lib.rs:4:19: replace * with + in total"]
    assert (survived.killed_by, survived.status_reason, survived.tests_completed) == (None, None, 2)
    (unviable,) = [result for result in by_name.values() if result.status is Status.COMPILE_ERROR]
    assert unviable.status_reason == "error[E0277]: the trait bound `Item: Default` is not satisfied"
    timeout = by_name["stock/src/lib.rs:7:11: replace -= with += in countdown"]
    assert (timeout.status, timeout.status_reason) == (Status.TIMEOUT, None)


def test_the_log_of_nextest_has_the_details_too(tmp_path: Path) -> None:
    name, log = "shop/src/lib.rs:4:28: replace - with + in total", "log/shop__src__lib.rs_line_4_col_28.log"
    shutil.copytree(RECORDED / "mutants.out", tmp_path / "mutants.out")
    (tmp_path / "mutants.out" / log).write_text(OF_NEXTEST, "utf-8")
    [killed] = [each for each in Outcomes(tmp_path / "mutants.out", DUE).new() if each.mutant.handle.names[0] == name]
    assert killed.killed_by == ("tests::three_cost_thrice_as_much", "tests::ends")
    assert killed.status_reason == "assertion `left == right` failed\n  left: 10\n right: 6"
    assert killed.tests_completed == 3


def test_outcomes_come_once_and_half_a_file_is_none(tmp_path: Path) -> None:
    text = (RECORDED / "mutants.out" / "outcomes.json").read_text("utf-8")
    outcomes = Outcomes(tmp_path, DUE)
    assert outcomes.new() == []
    (tmp_path / "outcomes.json").write_text(text[: len(text) // 2])
    assert outcomes.new() == []
    (tmp_path / "outcomes.json").write_text(text)
    assert len(outcomes.new()) == len(LISTED)
    assert outcomes.new() == []


def test_a_build_that_looks_for_version_control_is_told_how_to_have_it(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    (tmp_path / "log/baseline.log").write_text("fatal: not a git repository (or any of the parent directories): .git\n")
    assert "copy_vcs = true" in str(Outcomes(tmp_path, DUE).baseline_error())


def test_a_mutant_of_other_text_or_outside_the_project_is_none(tmp_path: Path) -> None:
    fields = LISTED[0]
    assert Sources(ROOT / "stock", ROOT).mutant(fields, "") is None
    assert Sources(tmp_path, tmp_path).mutant(fields, "") is None
    (tmp_path / "shop" / "src").mkdir(parents=True)
    (tmp_path / "shop" / "src" / "lib.rs").write_text("// short\n")
    assert Sources(tmp_path, tmp_path).mutant(fields, "") is None
    inner = Sources(ROOT / "shop", ROOT).mutant(fields, "")
    assert inner is not None
    assert inner.path == "src/lib.rs"
