"""What GitHub and GitLab read: each missed mutant on its lines, and no text of a project breaks out of its place."""

import json
from pathlib import Path

from attrs import evolve
from support.viewers import killed, mutant, reported, survived

from msp_bridge.model import Location, Position, Result, Status
from msp_bridge.reports.ci import MAX_FILES, code_quality, sarif, summary, warnings


def test_each_missed_mutant_is_a_warning_with_its_diff(tmp_path: Path) -> None:
    report = reported(tmp_path, survived(), killed("a.py"), Result(mutant("b.py"), Status.NO_COVERAGE))
    place, diff = "line=1,endLine=1,col=7,endColumn=8", "%0A- a = b + c%0A+ a = b - c"
    uncovered, missed = warnings(report)
    assert uncovered.startswith(f"::warning file=b.py,{place},title=NoCoverage%3A plus::No test runs this line")
    assert missed == f"::warning file=shop.py,{place},title=Survived%3A plus::No test kills this mutant:{diff}"


def test_several_lines_have_no_columns(tmp_path: Path) -> None:
    long = evolve(mutant(), location=Location(Position(1, 7), Position(2, 2)))
    (line,) = warnings(reported(tmp_path, Result(long, Status.SURVIVED), source="a = b + c\nd = 1\n"))
    assert line.startswith("::warning file=shop.py,line=1,endLine=2,title=")


def test_nothing_breaks_out_of_its_place(tmp_path: Path) -> None:
    nasty = survived("a,b:c%.py", 1, "\r\n::error::x", "m,::\n")
    (line,) = warnings(reported(tmp_path, nasty))
    assert "\n" not in line
    assert "\r" not in line
    assert line.startswith("::warning file=a%2Cb%3Ac%25.py,line=1,")
    assert "title=Survived%3A m%2C%3A%3A\\n::" in line


def test_the_summary_has_the_score_and_the_files_that_miss_most_first(tmp_path: Path) -> None:
    results = (
        killed("a.py"),
        survived("a_b.py"),
        killed("c|d.py"),
        survived("c|d.py", 1, "*"),
        survived("c|d.py", 1, "/"),
    )
    assert summary(reported(tmp_path, *results)) == (
        "### Mutation score: 40.0 %\n\n2 Killed, 3 Survived\n\n"
        "| file | score | missed |\n|---|---|---|\n"
        "| c\\|d.py | 33.3 % | 2 |\n| a\\_b.py | 0.0 % | 1 |\n"
    )


def test_the_summary_of_nothing_says_so(tmp_path: Path) -> None:
    assert summary(reported(tmp_path)) == "### Mutation score: -\n\nThere are no mutants.\n\n"


def test_a_long_summary_is_cut_and_says_so(tmp_path: Path) -> None:
    results = [survived(f"{number}.py") for number in range(MAX_FILES + 5)]
    assert summary(reported(tmp_path, *results)).endswith("| … 5 more files | | |\n")


def test_sarif_has_a_result_for_each_missed_mutant(tmp_path: Path) -> None:
    missed = survived("a b.py")
    log = json.loads(sarif(reported(tmp_path, missed, killed("c.py")), "packages/shop/"))
    (run,) = log["runs"]
    (result,) = run["results"]
    assert log["version"] == "2.1.0"
    assert result["ruleId"] == "Survived"
    assert result["ruleId"] in [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert result["message"]["text"] == "plus: No test kills this mutant:\n- a = b + c\n+ a = b - c"
    assert result["partialFingerprints"] == {"mutantId/v1": missed.mutant.id}
    assert result["locations"] == [
        {
            "physicalLocation": {
                "artifactLocation": {"uri": "packages/shop/a%20b.py"},
                "region": {"startLine": 1, "startColumn": 7, "endLine": 1, "endColumn": 8},
            }
        }
    ]


def test_code_quality_has_an_issue_for_each_missed_mutant(tmp_path: Path) -> None:
    uncovered = Result(mutant("b.py"), Status.NO_COVERAGE)
    issues = json.loads(code_quality(reported(tmp_path, killed("a.py"), uncovered, survived()), "api/"))
    assert [(issue["severity"], issue["location"]) for issue in issues] == [
        ("info", {"path": "api/b.py", "lines": {"begin": 1, "end": 1}}),
        ("minor", {"path": "api/shop.py", "lines": {"begin": 1, "end": 1}}),
    ]
    assert issues[0]["fingerprint"] == uncovered.mutant.id
    assert issues[0]["check_name"] == "plus"
    assert issues[0]["description"].startswith("NoCoverage: plus. No test runs this line")
