"""Short runs: samples, budgets, the order of mutants, and what is tested again."""

import re
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner
from support.command_line import GATED, bridge, script

from msp_bridge.cli.run import run as run_command
from msp_bridge.cli.short_runs import ShortRun, estimate, in_order, wilson
from msp_bridge.last_results import KnownResults
from msp_bridge.model import Location, Mutant, Position, Status
from msp_bridge.reports.results import Score
from msp_bridge.workspace.targets import Changes


def mutant(number: int, path: str = "a.py", mutator: str = "plus") -> Mutant:
    return Mutant(path, mutator, Location(Position(number, 1), Position(number, 2)), "-")


def test_a_sample_is_spread_over_files_and_mutators_and_the_same_each_time(tmp_path: Path) -> None:
    known = KnownResults(tmp_path)
    mutants = [mutant(n, path, name) for n in range(1, 26) for path in ("a.py", "b.py") for name in ("plus", "times")]
    found = ShortRun(sample="20").chosen(mutants, known)
    assert Counter((each.path, each.mutator) for each in found) == dict.fromkeys(
        [("a.py", "plus"), ("a.py", "times"), ("b.py", "plus"), ("b.py", "times")], 5
    )
    assert ShortRun(sample="20").chosen(mutants[::-1], known) == [each for each in mutants[::-1] if each in found]
    assert ShortRun(sample="20", seed=1).chosen(mutants, known) != found
    assert len(ShortRun(sample="5%").chosen(mutants, known)) == 5
    assert ShortRun(sample="200").chosen(mutants, known) == mutants


def test_the_interval_of_a_sample_is_wilsons() -> None:
    low, high = wilson(8, 10)
    assert (round(low, 3), round(high, 3)) == (0.490, 0.943)  # as in the tables
    assert wilson(10, 10)[1] == 1
    score = Score(Counter({Status.KILLED: 8, Status.SURVIVED: 2}))
    assert "10 of 50 mutants, seed 0; 95 % confidence: 49.0 to 94.3 %" in (
        ShortRun(sample="10").interval(score, 50) or ""
    )
    assert ShortRun(sample="10").interval(score, 10) is None


def kept(*statuses: tuple[Mutant, str], **config: object) -> dict[str, object]:
    files: dict[str, dict[str, list[dict[str, str]]]] = {}
    for each, status in statuses:
        files.setdefault(each.path, {"mutants": []})["mutants"].append({"id": each.id, "status": status})
    return {"files": files, "config": config}


def test_a_budget_goes_to_changed_lines_then_to_what_was_not_tested_for_longest() -> None:
    changed, never, old, new, pending = (mutant(n) for n in range(1, 6))
    last, first = kept((new, "Killed"), (pending, "Pending")), kept((old, "Killed"), (new, "Killed"))
    groups = in_order([new, pending, old, never, changed], Changes({"a.py": [range(1, 2)]}), [last, first])
    assert groups == [[changed], [pending, never], [old], [new]]


def test_an_estimate_is_of_what_an_earlier_run_took() -> None:
    mutants = [mutant(n) for n in range(1, 101)]
    before = kept((mutants[0], "NoCoverage"), seconds=100.0, tested=50)
    assert estimate(mutants, [kept(seconds=1.0, tested=1), before]) == "about 3 min: 100 mutants, 1 without tests"
    assert estimate(mutants[:20], [before]) is None
    assert estimate(mutants, []) is None


@pytest.mark.parametrize("arguments", [["--sample", "0"], ["--sample", "200%"], ["--budget", "5"], ["--budget", "0s"]])
def test_a_wrong_number_is_a_usage_error(arguments: list[str]) -> None:
    done = CliRunner().invoke(run_command, arguments)
    assert done.exit_code == 2
    assert re.search(r"is no (number of mutants|time)", done.output)


def test_only_what_survived_last_time_is_tested_again(project: Path) -> None:
    assert bridge(project, "run").returncode == 0
    done = bridge(project, "run", "--status", "survived")
    assert "2 mutants in 1 file" in done.stdout
    assert "4" in bridge(project, "results", "--all").stdout.split("mutation score")[0]  # the others are as they were
    done = bridge(project, "run", "--mutator", "DIG", "--status", "Killed")
    assert "no mutants with this status or mutator" in done.stdout
    (project / "empty.script").touch()
    assert "no mutants in empty.script\n" in bridge(project, "run", "empty.script", "--sample", "2").stdout


def test_fail_fast_stops_at_a_survivor(project: Path) -> None:
    done = bridge(project, "run", "--fail-fast")
    assert done.returncode == 1
    assert re.search(r"a mutant has survived \(--fail-fast\): \d mutants? of 4 not tested", done.stderr)


def test_a_budget_ends_the_run_and_says_what_was_not_tested(project: Path, tmp_path: Path) -> None:
    script(project, mutations=GATED, events=str(tmp_path))
    done = bridge(project, "run", "--budget", "3s")  # of which the scripted tool needs all
    assert done.returncode == 0, done.stderr
    assert re.search(r"the budget of 3 s is used up: [34] mutants of 4 not tested", done.stderr)
