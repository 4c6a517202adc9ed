"""The mutation score counts what the tests could have noticed; a diff shows whole lines, and only those that differ."""

import io
from pathlib import Path

import pytest
from attrs import evolve
from rich.console import Console

from msp_bridge.model import Location, Mutant, Position, Result, Status
from msp_bridge.reports.results import MAX_LINES, Diff, Score
from msp_bridge.reports.terminal import mutant_table, show_summary
from msp_bridge.source import SourceText

MUTANT = Mutant("a.py", "number", Location(Position(1, 1), Position(1, 2)), "2")


@pytest.mark.parametrize(
    ("statuses", "percent"),
    [
        ("Killed Timeout Survived NoCoverage", 50),
        ("Killed CompileError RuntimeError Ignored", 100),
        ("Ignored", None),
    ],
)
def test_errors_and_ignored_mutants_do_not_count(statuses: str, percent: float | None) -> None:
    assert Score.of(Result(MUTANT, Status(status)) for status in statuses.split()).percent == percent


def lines(text: str, old: str, new: str) -> list[tuple[str, str]]:
    source = SourceText(text)
    at = text.index(old)
    mutant = Mutant("a.py", "m", source.location(at, at + len(old)), new)
    return list(Diff.of(source, mutant).lines())


@pytest.mark.parametrize(
    ("text", "old", "new", "shown"),
    [
        ("x = 1\na = b + c  # sum\ny = 2\n", "+", "-", [("-", "a = b + c  # sum"), ("+", "a = b - c  # sum")]),
        ("a\nb\nc\n", "b\nc", "c", [("-", "b")]),
        ("a = 1", "1", "2", [("-", "a = 1"), ("+", "a = 2")]),
        ("a = 1\r\nb = 2\r\n", "1", "3", [("-", "a = 1"), ("+", "a = 3")]),
        ('s = "🙂" + a\n', "+", "-", [("-", 's = "🙂" + a'), ("+", 's = "🙂" - a')]),
    ],
)
def test_lines_that_differ_are_shown_whole(text: str, old: str, new: str, shown: list[tuple[str, str]]) -> None:
    assert lines(text, old, new) == shown


def test_a_long_side_is_cut_and_says_so() -> None:
    text = "".join(f"line {number}\n" for number in range(MAX_LINES + 3))
    shown = lines(text, text, "pass\n")
    assert shown[MAX_LINES] == (" ", "… 3 more lines")
    assert shown[-1] == ("+", "pass")


def test_a_source_that_has_changed_since_is_an_error() -> None:
    mutant = Mutant("a.py", "m", SourceText("a\nb\nc\n").location(4, 5), "d")
    with pytest.raises(ValueError, match="line 3 is not in a text"):
        Diff.of(SourceText("a\n"), mutant)


def test_a_path_that_is_too_long_for_the_terminal_is_shown_whole(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    terminal = io.StringIO()
    console = Console(width=60, file=terminal)
    path = "src/main/java/org/example/library/of/many/packages/Counter.java"
    mutants = [evolve(MUTANT, path=each) for each in (path, "a.py")]
    show_summary(console, tmp_path, [Result(mutant, Status.SURVIVED) for mutant in mutants])
    console.print(mutant_table(tmp_path, mutants))
    first_columns = "".join(line.split("  ")[0].rstrip() for line in terminal.getvalue().splitlines())
    assert f"a.py{path}" in first_columns
    assert f"{path}:1:1a.py:1:1" in first_columns
