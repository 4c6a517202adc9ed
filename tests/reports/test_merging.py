"""Shards share out all mutants; merging joins their reports, each mutant with its strongest result."""

import itertools
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.viewers import SCHEMA, killed, mutant, reported, survived

import msp_bridge
from msp_bridge.model import Result, Status
from msp_bridge.reports.merging import STRONGEST_FIRST, NamedReport, Shard, Unmergeable, incomplete, merged
from msp_bridge.reports.results import Score
from msp_bridge.reports.standard import entries


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
    two.pop("testFiles", None)  # as of tools that name no tests
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
    stronger = reported(tmp_path, killed("b.py"))
    for report, path, id in ((one, "a.py", "1"), (two, "b.py", "1"), (stronger, "b.py", "2")):
        report["files"][path]["mutants"][0]["id"] = id
    made = merge(one, two, stronger)
    ids = [fields["id"] for file in made["files"].values() for fields in file["mutants"]]
    assert ids == ["1", mutant("b.py").id]


def test_a_path_with_two_sources_is_refused(tmp_path: Path) -> None:
    one, two = reported(tmp_path / "one", killed("a.py")), reported(tmp_path / "two", killed())
    three = reported(tmp_path / "three", killed(), source="a = b + d\n")
    problem = r"^shop\.py in 3\.json is not the text that it is in 2\.json: merge reports on the same sources, "
    with pytest.raises(Unmergeable, match=problem + "relative to the same root$"):
        merge(one, two, three)


def test_a_test_that_is_another_one_is_refused(tmp_path: Path) -> None:
    one, two = (reported(tmp_path, killed(killed_by=("t.py::test_a",))) for _ in range(2))
    two["testFiles"]["t.py"]["tests"][0]["name"] = "test_b"
    problem = r"^test t\.py::test_a in 2\.json is not the test that it is in another report: "
    with pytest.raises(Unmergeable, match=problem + "merge reports of one tool on one test suite$"):
        merge(one, two)


def test_each_test_is_listed_once(tmp_path: Path) -> None:
    one = reported(tmp_path, killed("a.py", killed_by=("t.py::a", "t.py::b")))
    two = reported(tmp_path, killed("b.py", killed_by=("t.py::b", "t.py::c")))
    tests = merge(one, two)["testFiles"]["t.py"]["tests"]
    assert [test["id"] for test in tests] == ["t.py::a", "t.py::b", "t.py::c"]


def test_of_results_that_are_as_strong_the_first_counts(tmp_path: Path) -> None:
    (entry,) = entries(merge(reported(tmp_path, killed(duration=1.0)), reported(tmp_path, killed(duration=2.0))))
    assert entry.result == killed(duration=1.0)


def test_the_root_is_kept_when_all_have_it(tmp_path: Path) -> None:
    one, two = reported(tmp_path / "one", killed()), reported(tmp_path / "two", killed())
    assert merge(one, one)["projectRoot"] == str(tmp_path / "one")
    assert "projectRoot" not in merge(one, two)


def test_a_merged_report_is_ours_and_keeps_what_all_have_configured(tmp_path: Path) -> None:
    one, other = reported(tmp_path, killed(), jobs=2), reported(tmp_path, killed(), jobs=3)
    made = merge(one, one)
    assert made["framework"] == {"name": "msp-bridge", "version": msp_bridge.__version__}
    assert made["config"] == {"jobs": 2}
    assert "config" not in merge(one, other)


def test_one_report_alone_is_what_it_was(tmp_path: Path) -> None:
    alone = reported(tmp_path, killed("a.py", 1), survived("b.py", 1), jobs=2)
    made = merge(alone)
    assert statuses(made) == statuses(alone)
    assert (made["config"], made["projectRoot"]) == ({"jobs": 2}, str(tmp_path))


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


@given(count=st.integers(0, 60), of=st.integers(1, 9))
def test_every_mutant_is_in_one_shard_and_all_shards_are_alike(count: int, of: int) -> None:
    mutants = [mutant(f"{line % 3}.py", line + 1) for line in range(count)]
    parts = [Shard(number, of).take(mutants) for number in range(1, of + 1)]
    assert sorted(found.id for part in parts for found in part) == sorted(found.id for found in mutants)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_the_order_of_discovery_changes_nothing() -> None:
    mutants = [mutant(line=line) for line in range(1, 20)]
    assert Shard(2, 3).take(mutants) == Shard(2, 3).take(reversed(mutants))


def test_a_file_is_spread_over_the_shards() -> None:
    mutants = [mutant(f"{file}.py", line) for file in range(2) for line in range(1, 101)]
    for number in (1, 2):
        part = Shard(number, 2).take(mutants)
        assert 30 < sum(found.path == "0.py" for found in part) < 70


@pytest.mark.parametrize("text", ["", "1", "0/3", "4/3", "1/0", "a/b", "-1/3", "1/3/5", "1.0/3"])
def test_what_is_no_shard_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="is not K/N"):
        Shard.parse(text)


def test_a_shard_is_written_as_k_of_n() -> None:
    assert [Shard.parse(text) for text in ("1/12", "2/12", "12/12")] == [Shard(1, 12), Shard(2, 12), Shard(12, 12)]


MUTANTS = [mutant(line=1), mutant(line=2)]


def test_all_shards_are_complete_and_so_are_reports_of_none() -> None:
    assert incomplete([Shard(number, 2).config(MUTANTS) for number in (1, 2)]) is None
    assert incomplete([{}, {}]) is None


def test_a_missing_shard_is_named() -> None:
    reason = incomplete([Shard(2, 4).config(MUTANTS), Shard(4, 4).config(MUTANTS)])
    assert reason == "the reports of shards 1/4, 3/4 are missing"
    assert incomplete([Shard(2, 2).config(MUTANTS)]) == "the report of shard 1/2 is missing"
    reason = incomplete([Shard(1, 100).config(MUTANTS)])
    assert reason == f"the reports of shards {', '.join(f'{number}/100' for number in range(2, 12))} are missing"


def test_shards_of_other_mutants_are_not_taken_for_the_rest() -> None:
    reason = incomplete([Shard(1, 2).config(MUTANTS), Shard(2, 2).config(MUTANTS[:1])])
    which = "run every shard on the same commit, with the same options"
    assert reason == f"they are shards of different sets of mutants: {which}"
