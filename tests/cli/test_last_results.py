"""`results`, `show`, `diff` and `accept`: what is done with kept runs. No tool is there that could be started."""

import json
import tomllib
from pathlib import Path

import jsonschema
import pytest
from support.kept import KeptProject
from support.viewers import SCHEMA

from msp_bridge.errors import ConfigurationError
from msp_bridge.last_results import kept_reports
from msp_bridge.model import Status
from msp_bridge.reports.kept import KEPT

KILLED, SURVIVED, NO_COVERAGE = Status.KILLED, Status.SURVIVED, Status.NO_COVERAGE


def test_without_a_run_the_error_says_how_to_get_one(kept: KeptProject) -> None:
    error = kept.call("results").exception
    assert isinstance(error, ConfigurationError)
    assert error.remedy == "`msp-bridge run` tests it"


def test_survivors_of_the_last_run_are_shown_with_their_ids(kept: KeptProject) -> None:
    plus, times = kept.mutant("a.py", "+", "-"), kept.mutant("a.py", "*", "/")
    kept.keep({plus: SURVIVED, times: KILLED})
    done = kept.call("results")
    assert f"Survived  a.py:2:14  plus  {plus.id}\n" in done.output
    assert "    +     return x - 1" in done.output
    assert times.id not in done.output
    assert times.id in kept.call("results", "--all").output
    assert times.id in kept.call("results", "--status", "killed").output


def test_where_nothing_is_selected_that_is_said(kept: KeptProject) -> None:
    kept.keep({kept.mutant("a.py", "+", "-"): SURVIVED})
    assert "no mutant is selected" in kept.call("results", "--mutator", "digit").output


def test_a_run_of_some_mutants_leaves_the_results_of_the_others(kept: KeptProject) -> None:
    plus, times = kept.mutant("a.py", "+", "-"), kept.mutant("a.py", "*", "/")
    limit = kept.mutant("b.py", "3", "4", "number")
    kept.keep({plus: SURVIVED, times: SURVIVED, limit: SURVIVED})
    kept.keep({plus: KILLED}, whole=False)
    done = kept.call("results")
    assert plus.id not in done.output
    assert times.id in done.output
    assert limit.id in done.output


def test_a_run_of_an_edited_file_leaves_the_results_of_lines_that_have_only_moved(kept: KeptProject) -> None:
    kept.write("a.py", (kept.root / "a.py").read_text() + "\n\ndef h(x):\n    return x % 2\n")
    plus, times, rest = (kept.mutant("a.py", sign, "-") for sign in "+*%")
    kept.keep({plus: SURVIVED, times: SURVIVED, rest: SURVIVED})
    kept.write("a.py", "# new\n" + (kept.root / "a.py").read_text().replace("x % 2", "x % 3"))
    plus, times, rest = (kept.mutant("a.py", sign, "-") for sign in "+*%")
    kept.keep({plus: KILLED}, whole=False)
    done = kept.call("results")
    assert f"Survived  a.py:7:14  plus  {times.id}\n" in done.output
    assert plus.id not in done.output
    assert rest.id not in done.output  # its line was another one


def test_a_run_of_the_whole_project_is_the_last_word(kept: KeptProject) -> None:
    plus, times = kept.mutant("a.py", "+", "-"), kept.mutant("a.py", "*", "/")
    kept.keep({plus: SURVIVED, times: SURVIVED})
    kept.keep({plus: SURVIVED})  # the other one is ignored in the tool's configuration since
    assert times.id not in kept.call("results").output


def test_a_mutant_moves_with_its_lines_and_is_stale_when_they_change(kept: KeptProject) -> None:
    plus, times = kept.mutant("a.py", "+", "-"), kept.mutant("a.py", "*", "/")
    kept.keep({plus: SURVIVED, times: SURVIVED})
    kept.write("a.py", "# new\n" + (kept.root / "a.py").read_text().replace("x * 2", "x * 3"))
    done = kept.call("results")
    found_as, plus = plus.id, kept.mutant("a.py", "+", "-")
    assert f"Survived  a.py:3:14  plus  {plus.id}\n" in done.output
    assert f"Survived  a.py:6:14  plus  {times.id}  stale\n" in done.output
    assert "1 result stale" in done.output
    report = json.loads(kept.call("results", "a.py:3", "--json", "-").stdout)
    assert [each["id"] for each in report["files"]["a.py"]["mutants"]] == [found_as]


def test_what_is_selected_goes_to_every_form(kept: KeptProject) -> None:
    plus, limit = kept.mutant("a.py", "+", "-"), kept.mutant("b.py", "3", "4", "number")
    kept.keep({plus: SURVIVED, limit: SURVIVED})
    done = kept.call("results", "--mutator", "NUM", "--json", "r.json", "--sarif", "r.sarif", "--html", "r.html")
    assert done.exit_code == 0, done.output
    report = json.loads(Path("r.json").read_text())
    jsonschema.validate(report, SCHEMA)
    assert list(report["files"]) == ["b.py"]
    assert len(json.loads(Path("r.sarif").read_text())["runs"][0]["results"]) == 1


def test_only_the_last_runs_are_kept(kept: KeptProject) -> None:
    plus = kept.mutant("a.py", "+", "-")
    for _ in range(KEPT + 2):
        kept.keep({plus: SURVIVED})
    assert len(kept_reports(kept.root).all()) == KEPT


def test_single_mutants_push_out_neither_the_last_whole_run_nor_each_other(kept: KeptProject) -> None:
    kept.write("c.py", "\n".join(f"x = {n} + y" for n in range(KEPT + 5)))
    at = [kept.mutant("c.py", f"{n} + y", "-") for n in range(KEPT + 5)]
    for _ in range(2):
        kept.keep(dict.fromkeys(at, SURVIVED))
    for mutant in at[1:]:
        kept.keep({mutant: KILLED}, whole=False)
    assert len(kept_reports(kept.root).all()) == 2 + KEPT
    assert f"{KEPT + 4} " in kept.call("results").output.split("Killed")[-1]
    assert len(json.loads(kept.call("trend", "--json").output)) == 2
    kept.keep(dict.fromkeys(at, SURVIVED))
    assert "0.0 %" in kept.call("results").output


def test_a_run_that_ended_before_its_last_mutant_is_no_point_of_the_trend(kept: KeptProject) -> None:
    plus, times = kept.mutant("a.py", "+", "-"), kept.mutant("a.py", "*", "/")
    kept.keep({plus: SURVIVED, times: KILLED})
    kept.keep({plus: KILLED, times: Status.PENDING})
    assert [point["score"] for point in json.loads(kept.call("trend", "--json").output)] == [50.0]
    assert kept.call("show", times.id).output.endswith("history  Killed\n\n")


def test_a_damaged_report_is_left_out(kept: KeptProject) -> None:
    plus = kept.mutant("a.py", "+", "-")
    kept.keep({plus: SURVIVED})
    (kept_reports(kept.root).directory / "99999999999999999999.json").write_text('{"files": ')
    assert plus.id in kept.call("results").output


@pytest.mark.parametrize("name", ["a.py:2:14", "a.py:2", "ID"])
def test_a_mutant_is_shown_with_its_tests_and_its_history(kept: KeptProject, name: str) -> None:
    plus = kept.mutant("a.py", "+", "-")
    kept.keep({plus: SURVIVED}, covered_by=("t.py::test_f",))
    kept.write("a.py", "\n" + (kept.root / "a.py").read_text())
    moved = kept.mutant("a.py", "+", "-")
    kept.keep({moved: KILLED}, killed_by=("t.py::test_f",), duration=12.0)
    done = kept.call("show", name.replace("ID", moved.id).replace(":2", ":3"))
    assert "-    return x + 1\n+    return x - 1\n" in done.output
    assert "killed by  t.py::test_f\ntime  12 ms\nhistory  Killed, Survived\n" in done.output


def test_a_mutant_that_is_not_known_is_an_error(kept: KeptProject) -> None:
    kept.keep({kept.mutant("a.py", "+", "-"): SURVIVED})
    for name in ("123", "b.py:1:9"):
        assert f"no mutant {name}" in str(kept.call("show", name).exception)


def test_diff_names_what_newly_survives_and_what_is_newly_killed(kept: KeptProject) -> None:
    plus, times = kept.mutant("a.py", "+", "-"), kept.mutant("a.py", "*", "/")
    kept.keep({plus: SURVIVED, times: KILLED})
    kept.write("a.py", "import os\n" + (kept.root / "a.py").read_text())
    plus, times = kept.mutant("a.py", "+", "-"), kept.mutant("a.py", "*", "/")
    kept.keep({plus: KILLED, times: SURVIVED, kept.mutant("b.py", "3", "4"): SURVIVED})
    done = kept.call("diff", "2", "1", "--json")
    found = json.loads(done.output)
    assert [each["id"] for each in found["newlyKilled"]] == [plus.id]
    assert [each["path"] for each in found["newlySurvived"]] == ["a.py", "b.py"]
    assert "50.0 % -> 33.3 %: 2 newly survived, 1 newly killed" in kept.call("diff").output
    assert "| Newly survived | mutator | change |" in kept.call("diff", "--markdown").output


def test_diff_of_runs_of_some_mutants_compares_all_results_as_they_were_then(kept: KeptProject) -> None:
    plus, times = kept.mutant("a.py", "+", "-"), kept.mutant("a.py", "*", "/")
    kept.keep({plus: SURVIVED, times: SURVIVED})
    kept.keep({plus: KILLED}, whole=False)
    kept.keep({times: SURVIVED}, whole=False)
    assert "50.0 % -> 50.0 %: 0 newly survived, 0 newly killed" in kept.call("diff").output
    assert "0.0 % -> 50.0 %: 0 newly survived, 1 newly killed" in kept.call("diff", "3").output


def test_diff_takes_report_files(kept: KeptProject) -> None:
    plus = kept.mutant("a.py", "+", "-")
    kept.keep({plus: SURVIVED})
    kept.call("results", "--json", "old.json")
    kept.keep({plus: KILLED})
    assert "0 newly survived, 1 newly killed" in kept.call("diff", "old.json").output
    assert "there is no run 3: 2 are kept" in str(kept.call("diff", "3").exception)


def test_an_accepted_survivor_counts_neither_way_and_stays_accepted_when_lines_move(kept: KeptProject) -> None:
    plus, times = kept.mutant("a.py", "+", "-"), kept.mutant("a.py", "*", "/")
    kept.keep({plus: SURVIVED, times: KILLED})
    assert kept.call("results", "--no-new-survivors").exit_code == 1
    done = kept.call("accept", plus.id, "--reason", "x is 0")
    assert done.exit_code == 0, done.output
    entry = {"path": "a.py", "mutator": "plus", "before": "return x + 1", "after": "return x - 1", "reason": "x is 0"}
    assert tomllib.loads((kept.root / "mutants-accepted.toml").read_text()) == {"accepted": [entry]}
    kept.write("a.py", "import os\n" + (kept.root / "a.py").read_text())
    done = kept.call("results", "--no-new-survivors", "--json", "r.json", "--sarif", "r.sarif", "--junit", "r.xml")
    assert done.exit_code == 0, done.output
    assert "accepted        1 (survivors)" in done.output
    assert "mutation score  100.0 %" in done.output
    mutant = json.loads(Path("r.json").read_text())["files"]["a.py"]["mutants"][0]
    assert (mutant["status"], mutant["statusReason"]) == ("Ignored", "accepted: x is 0")
    [result] = json.loads(Path("r.sarif").read_text())["runs"][0]["results"]
    assert result["suppressions"] == [{"kind": "external", "status": "accepted", "justification": "x is 0"}]
    assert "accepted: x is 0" in Path("r.xml").read_text()


def test_one_of_two_equal_lines_is_accepted_alone(kept: KeptProject) -> None:
    kept.write("c.py", "if a:\n    x = y + 1\nelse:\n    x = y + 1\n")
    first = kept.mutant("c.py", "+", "-")
    text = (kept.root / "c.py").read_text()
    kept.write("c.py", text.replace("+", "@", 1))
    second = kept.mutant("c.py", "+", "-")
    kept.write("c.py", text)
    kept.keep({first: SURVIVED, second: SURVIVED})
    kept.call("accept", second.id, "--reason", "no")
    done = kept.call("results")
    assert first.id in done.output
    assert second.id not in done.output


def test_entries_are_sorted_and_comments_stay(kept: KeptProject) -> None:
    plus, limit = kept.mutant("a.py", "+", "-"), kept.mutant("b.py", "3", "4", "number")
    kept.keep({plus: SURVIVED, limit: SURVIVED})
    kept.call("accept", limit.id, "--reason", 'a "quoted" \\ one\x7f')
    file = kept.root / "mutants-accepted.toml"
    file.write_text(file.read_text().rstrip("\n") + "  # agreed with Jo")
    kept.call("accept", "--all", "--reason", "second")
    text = file.read_text()
    assert "# agreed with Jo" in text
    entries = tomllib.loads(text)["accepted"]
    assert [(entry["path"], entry["reason"]) for entry in entries] == [
        ("a.py", "second"),
        ("b.py", 'a "quoted" \\ one\x7f'),
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("<<<<<<< HEAD\n", "can't use"),
        ("[[accepted]]\npath = 'a.py'\nbefore = 'x'\nafter = 'y'\n", "entry 1 has no `reason`"),
        ("[[accepted]]\nreason = 'a'\n", "entry 1 has no `path`"),
        ("accepted = 1\n", "`accepted` must be tables"),
    ],
)
def test_a_file_of_accepted_ones_that_is_damaged_is_an_error(kept: KeptProject, text: str, problem: str) -> None:
    kept.keep({kept.mutant("a.py", "+", "-"): SURVIVED})
    kept.write("mutants-accepted.toml", text)
    error = kept.call("results").exception
    assert isinstance(error, ConfigurationError)
    assert problem in str(error)


def test_accept_refuses_what_it_can_not_mean(kept: KeptProject) -> None:
    plus = kept.mutant("a.py", "+", "-")
    kept.keep({plus: SURVIVED, kept.mutant("a.py", "*", "/"): KILLED})
    for arguments in ([], ["--all", plus.id]):
        assert "name survivors" in str(kept.call("accept", *arguments, "--reason", "x").exception)
    assert "no survivor is selected" in str(kept.call("accept", "a.py:6", "--reason", "x").exception)
    assert "the reason is empty" in str(kept.call("accept", plus.id, "--reason", " ").exception)
    kept.write("a.py", "def f(x):\n    return x + 2\n")
    assert "has changed since" in str(kept.call("accept", plus.id, "--reason", "x").exception)
    assert not (kept.root / "mutants-accepted.toml").exists()


def test_a_mutant_is_applied_and_taken_back(kept: KeptProject) -> None:
    text = "\ufeffdef f(x):\r\n    return x + 1\r\n"
    file = kept.root / "c.py"
    file.write_bytes(text.encode())
    file.chmod(0o750)
    plus = kept.mutant("c.py", "+", "-")
    kept.keep({plus: SURVIVED})
    assert "apply --undo" in kept.call("apply", plus.id).output
    assert file.read_bytes() == text.replace("+", "-").encode()
    assert file.stat().st_mode & 0o777 == 0o750
    assert "a mutant is applied in c.py" in str(kept.call("apply", plus.id).exception)
    assert kept.call("apply", "--undo").output == "c.py is as it was\n"
    assert file.read_bytes() == text.encode()
    assert "no mutant is applied" in str(kept.call("apply", "--undo").exception)


def test_a_file_that_has_changed_since_is_not_written(kept: KeptProject) -> None:
    plus, times = kept.mutant("a.py", "+", "-"), kept.mutant("a.py", "*", "/")
    kept.keep({plus: SURVIVED, times: SURVIVED})
    file = kept.root / "a.py"
    text = file.read_text()
    assert "names 2 mutants" in str(kept.call("apply", "a.py").exception)
    kept.call("apply", plus.id)
    file.write_text("mine\n")
    assert "a.py has changed since the mutant was applied" in str(kept.call("apply", "--undo").exception)
    assert file.read_text() == "mine\n"
    file.write_text(text)
    kept.call("apply", "--undo")
    file.write_text(text + "# more\n")
    assert "a.py has changed since" in str(kept.call("apply", times.id).exception)
    assert file.read_text() == text + "# more\n"
