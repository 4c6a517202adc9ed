"""Edits: a unified diff says exactly what changes, and a comment stands where the tool looks for it."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msp_bridge.model import Location, Mutant, Position
from msp_bridge.source import Edit, SourceText, above_line, edit_diff, in_comment, mutant_diff, unified_diff

TEN = "".join(f"line {number}\n" for number in range(1, 11))
lines = st.lists(st.sampled_from(["a\n", "b\n", "c\r\n", "\n", "é😀\n", "\x0c\u2028\n"]), max_size=30).map("".join)
texts = st.tuples(lines, st.sampled_from(["", "end", "end\r"])).map("".join)


def applied(before: str, diff: str) -> str:
    """What the diff makes of `before`, read as POSIX describes the format."""
    old, after, at = before.split("\n"), [], 0
    hunks = diff.split("\n@@ -")[1:]
    for hunk in hunks:
        header, *body = hunk.split("\n")
        first, count = map(int, header.split(" ")[0].split(","))
        start = first - (count > 0)
        after += old[at:start]
        at = start + count
        rows = body[:-1] if hunk is hunks[-1] else body
        for number, row in enumerate(rows):
            if row[:1] in (" ", "+"):
                after.append(row[1:])
                if rows[number + 1 : number + 2] == ["\\ No newline at end of file"]:
                    after.append(None)
    rest = old[at:]
    if after and after[-1] is None:
        return "\n".join(after[:-1])
    if rest == [] and before and not before.endswith("\n"):
        return "".join(f"{row}\n" for row in after)
    return "\n".join([*after, *rest])


@given(texts, texts)
def test_a_diff_says_exactly_what_changes(before: str, after: str) -> None:
    diff = unified_diff("a.py", before, after)
    assert (diff == "") == (before == after)
    if diff:
        assert diff.startswith("--- a/a.py\n+++ b/a.py\n@@ -")
        assert applied(before, diff) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (TEN, TEN.replace("line 5", "LINE 5")),
        (TEN, TEN.replace("line 1\n", "").replace("line 10\n", "")),
        (TEN, TEN + "line 11"),
        (TEN.replace("\n", "\r\n"), TEN.replace("\n", "\r\n").replace("line 2\r\n", "")),
        ("x = 1", "x = 2"),
        ("x = 1", "x = 1\n"),
        (TEN * 3, TEN * 2 + "line 0\n" + TEN),
    ],
)
def test_git_applies_a_diff(before: str, after: str, tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_bytes(before.encode())
    command = ["git", "apply", "--whitespace=nowarn", "-"]
    subprocess.run(command, input=unified_diff("a.py", before, after).encode(), cwd=tmp_path, check=True, timeout=60)
    assert file.read_bytes().decode() == after


def test_the_diff_of_a_mutant_has_three_lines_around_it() -> None:
    source = SourceText(TEN)
    mutant = Mutant("a/b.py", "m", Location(Position(5, 1), Position(5, 5)), "LINE")
    assert mutant_diff(source, mutant) == (
        "--- a/a/b.py\n+++ b/a/b.py\n@@ -2,7 +2,7 @@\n"
        " line 2\n line 3\n line 4\n-line 5\n+LINE 5\n line 6\n line 7\n line 8\n"
    )


def test_lines_that_are_often_there_are_not_in_a_diff() -> None:
    same = "\n" * 300
    diff = unified_diff("a.py", f"first{same}last\n", f"1{same}2\n").splitlines()
    assert [line for line in diff if line[0] in "+-"] == ["--- a/a.py", "+++ b/a.py", "-first", "+1", "-last", "+2"]


def test_a_mutant_of_another_text_has_no_diff() -> None:
    mutant = Mutant("a", "m", Location(Position(5, 1), Position(5, 5)), "")
    assert (mutant_diff(SourceText("x\n"), mutant), mutant_diff(None, mutant)) == ("", "")


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_a_line_above_another_is_indented_and_ends_like_it(line_end: str) -> None:
    source = SourceText(line_end.join(["f {", "\t  x", "", " ", "}"]))
    edit = above_line("a.js", source, 2, "// no", "all")
    assert edit.apply(source) == line_end.join(["f {", "\t  // no", "\t  x", "", " ", "}"])
    assert above_line("a.js", source, 3, "// no", "all").text == f"// no{line_end}"
    blank = Location(Position(4, 1), Position(4, 1))
    assert above_line("a.js", source, 4, "// no", "all") == Edit("a.js", blank, f" // no{line_end}", "all")
    assert edit_diff(source, edit).startswith("--- a/a.js\n+++ b/a.js\n@@ ")
    assert "+\t  // no" in edit_diff(source, edit)


def test_an_edit_replaces_its_location() -> None:
    edit = Edit("a", Location(Position(1, 2), Position(2, 1)), "-", "all")
    assert edit.apply(SourceText("a\nb")) == "a-b"


@pytest.mark.parametrize(
    ("reason", "comment"),
    [("", ""), (" \n\t ", ""), ("as\nit  is\x1b[31m \u2028", ": as it is [31m"), ("ünï 😀", ": ünï 😀")],
)
def test_a_reason_stays_in_its_comment(reason: str, comment: str) -> None:
    assert in_comment(reason, ": ") == comment
