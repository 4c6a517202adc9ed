"""Merging: each mutant once, with its strongest result; what doesn't belong together is refused."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from support.viewers import SCHEMA, killed, mutant, reported, survived

from msp_bridge.model import Result, Status
from msp_bridge.reports.entries import entries
from msp_bridge.reports.merging import STRONGEST_FIRST, NamedReport, Unmergeable, merged
from msp_bridge.reports.score import Score
from msp_bridge.reports.shard import Shard


def merge(*reports: dict[str, Any]) -> dict[str, Any]:
    made = merged([NamedReport(f"{number}.json", report) for number, report in enumerate(reports, 1)])
    jsonschema.validate(made, SCHEMA)
    return made


def statuses(report: dict[str, Any]) -> list[tuple[str, int, str]]:
    return [
        (entry.result.mutant.path, entry.result.mutant.location.start.line, entry.result.status.value)
        for entry in entries(report)
    ]


def test_parts_become_one_whole_in_order(tmp_path: Path) -> None:
    source = "a = b + c\n" * 3
    one = reported(tmp_path, killed("b.py", 3), killed("a.py", 2), source=source)
    two = reported(tmp_path, survived("b.py", 1), source=source)
    assert statuses(merge(one, two)) == [("a.py", 2, "Killed"), ("b.py", 1, "Survived"), ("b.py", 3, "Killed")]


@pytest.mark.parametrize(("strong", "weak"), list(itertools.combinations(STRONGEST_FIRST, 2)))
def test_the_stronger_result_counts_in_either_order(tmp_path: Path, strong: Status, weak: Status) -> None:
    reports = [reported(tmp_path, Result(mutant(), status)) for status in (strong, weak)]
    for made in (merge(*reports), merge(*reversed(reports))):
        assert statuses(made) == [("shop.py", 1, strong.value)]


def test_every_status_has_its_strength() -> None:
    assert set(STRONGEST_FIRST) == set(Status)


def test_the_stronger_result_brings_its_details(tmp_path: Path) -> None:
    tests = {"killed_by": ("t.py::test_a",), "duration": 1.5}
    made = merge(reported(tmp_path, survived()), reported(tmp_path, killed(**tests)))
    (entry,) = entries(made)
    assert entry.result == killed(**tests)
    assert made["testFiles"] == {"t.py": {"tests": [{"id": "t.py::test_a", "name": "test_a"}]}}


def test_merging_changes_none_of_its_reports(tmp_path: Path) -> None:
    one, two = reported(tmp_path, survived()), reported(tmp_path, killed())
    before = [str(one), str(two)]
    merge(one, two)
    assert [str(one), str(two)] == before


def test_a_merged_report_can_be_merged_again(tmp_path: Path) -> None:
    reports = [
        reported(tmp_path, killed("a.py")),
        reported(tmp_path, survived("b.py")),
        reported(tmp_path, killed("c.py")),
    ]
    assert merge(merge(*reports[:2]), reports[2]) == merge(*reports)


def test_other_tools_may_number_their_mutants_anew_in_each_run(tmp_path: Path) -> None:
    one, two = reported(tmp_path, killed("a.py")), reported(tmp_path, survived("b.py"))
    for report, path in ((one, "a.py"), (two, "b.py")):
        report["files"][path]["mutants"][0]["id"] = "1"
    made = merge(one, two)
    ids = [fields["id"] for file in made["files"].values() for fields in file["mutants"]]
    assert ids == ["1", mutant("b.py").id]


def test_a_path_with_two_sources_is_refused(tmp_path: Path) -> None:
    one = reported(tmp_path / "one", killed())
    two = reported(tmp_path / "two", killed(), source="a = b + d\n")
    with pytest.raises(Unmergeable, match=r"shop\.py in 2\.json is not the text that it is in 1\.json"):
        merge(one, two)


def test_a_test_that_is_another_one_is_refused(tmp_path: Path) -> None:
    one, two = (reported(tmp_path, killed(killed_by=("t.py::test_a",))) for _ in range(2))
    two["testFiles"]["t.py"]["tests"][0]["name"] = "test_b"
    with pytest.raises(Unmergeable, match=r"test t\.py::test_a in 2\.json is not the test"):
        merge(one, two)


def test_the_root_is_told_when_all_have_it(tmp_path: Path) -> None:
    one, two = reported(tmp_path / "one", killed()), reported(tmp_path / "two", killed())
    assert merge(one, one)["projectRoot"] == str(tmp_path / "one")
    assert "projectRoot" not in merge(one, two)


def test_whole_shards_have_the_score_of_the_whole(tmp_path: Path) -> None:
    results = {mutant(line=1): killed("shop.py", 1), mutant(line=2): survived("shop.py", 2)}
    shards = [Shard(number, 2) for number in (1, 2)]
    reports = [
        reported(tmp_path, *(results[found] for found in shard.take(results)), **shard.config(list(results)))
        for shard in shards
    ]
    made = merge(*reports)
    assert Score.of(entry.result for entry in entries(made)).percent == 50
    assert "config" not in made
    with pytest.raises(Unmergeable, match="the report of shard 2/2 is missing"):
        merge(reports[0])
