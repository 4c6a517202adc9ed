"""`run --since`: only what has changed in git, whatever kind of change that is."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.command_line import SCRIPT, bridge, script
from support.repositories import commit, git, isolate

from msp_bridge.model import Location, Mutant, Position
from msp_bridge.workspace.targets import EVERY_LINE, Changes, changed_lines

TEXT = "a = 1\nb = 1\nc = 1\nd = 1\ne = 1\n"


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    isolate(monkeypatch)


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Path]:
    """A repository with a branch `main`, and one that has left it, on which we are."""
    root = tmp_path / "project"
    root.mkdir()
    git(root, "init", "--quiet", "--initial-branch=main")
    script(root, mutations=[SCRIPT["mutations"][1]])
    commit(root, a=TEXT, b=TEXT)
    git(root, "checkout", "--quiet", "-b", "branch")
    status = git(root, "status", "--porcelain")
    yield root
    assert status == ""


def shown(project: Path, *arguments: str) -> list[str]:
    """Path and line of each mutant that `run` tests: all of them survive."""
    done = bridge(project, "run", *arguments)
    assert done.returncode == 0, done.stderr
    return sorted(
        ":".join(line.split()[1].split(":")[:2])
        for line in done.stdout.splitlines()
        if line.startswith("Survived  ") and ".py:" in line
    )


def test_nothing_has_changed(project: Path) -> None:
    assert shown(project, "--since", "main") == []


def test_committed_staged_and_unsaved_changes_count(project: Path) -> None:
    commit(project, a=TEXT.replace("b = 1", "b = 11"))
    (project / "a.py").write_text((project / "a.py").read_text().replace("d = 1", "d = 21"))
    git(project, "add", "a.py")
    (project / "b.py").write_text(TEXT.replace("e = 1", "e = 21"))
    assert shown(project, "--since", "main") == ["a.py:2", "a.py:2", "a.py:4", "b.py:5"]
    assert shown(project, "--since", "HEAD") == ["a.py:4", "b.py:5"]


def test_a_new_file_counts_as_a_whole_known_to_git_or_not(project: Path) -> None:
    commit(project, c="x = 1\n")
    (project / "d.py").write_text("x = 1\n")
    (project / ".gitignore").write_text("ignored.py\n")
    (project / "ignored.py").write_text("x = 1\n")
    assert shown(project, "--since", "main") == ["c.py:1", "d.py:1"]


def test_what_others_have_done_meanwhile_does_not_count(project: Path) -> None:
    git(project, "checkout", "--quiet", "main")
    commit(project, b=TEXT.replace("a = 1", "a = 2"))
    git(project, "checkout", "--quiet", "branch")
    commit(project, a=TEXT.replace("c = 1", "c = 21"))
    assert shown(project, "--since", "main") == ["a.py:3"]


def test_only_the_tools_are_named_whose_files_have_changed(project: Path) -> None:
    for name in ("api", "web"):
        (project / name).mkdir()
        script(project / name, mutations=[SCRIPT["mutations"][1]])
        (project / name / "a.py").write_text("x = 1\n")
    commit(project)
    (project / "web/a.py").write_text("x = 11\n")
    assert bridge(project, "run", "--since", "HEAD").stdout.startswith("scripted in web/: 2 mutants in 1 file\n")


def test_a_renamed_file_counts_where_it_has_changed(project: Path) -> None:
    git(project, "mv", "a.py", "renamed.py")
    (project / "renamed.py").write_text(TEXT.replace("e = 1", "e = 21"))
    assert shown(project, "--since", "main") == ["renamed.py:5"]


def test_a_deleted_file_has_nothing_to_test(project: Path) -> None:
    (project / "a.py").unlink()
    assert shown(project, "--since", "main") == []


def test_where_lines_are_gone_their_neighbours_count(project: Path) -> None:
    (project / "a.py").write_text(TEXT.replace("c = 1\n", ""))
    assert shown(project, "--since", "main") == ["a.py:2", "a.py:3"]


def test_paths_narrow_it_further(project: Path) -> None:
    (project / "a.py").write_text(TEXT.replace("1", "21"))
    (project / "b.py").write_text(TEXT.replace("1", "21"))
    assert shown(project, "--since", "main", "b.py:2-3") == ["b.py:2", "b.py:3"]


def test_a_project_below_the_repositorys_root_has_its_own_paths(project: Path) -> None:
    inner = project / "packages" / "shop"
    inner.mkdir(parents=True)
    script(inner, mutations=[SCRIPT["mutations"][1]])
    commit(inner, a=TEXT)
    (inner / "a.py").write_text(TEXT.replace("c = 1", "c = 21"))
    (project / "a.py").write_text(TEXT.replace("d = 1", "d = 21"))
    assert shown(inner, "--since", "HEAD") == ["a.py:3"]


@pytest.mark.parametrize("name", ["two words.py", 'tab\tand"quote".py', "grüße.py", "back\\slash.py", "new\nline.py"])
def test_a_file_may_have_any_name(project: Path, name: str) -> None:
    (project / name).write_text(TEXT)
    commit(project)
    (project / name).write_text(TEXT.replace("b = 1", "b = 21"))
    done = bridge(project, "run", "--since", "HEAD")
    assert "scripted: 1 mutant in 1 file" in done.stdout


def test_the_users_settings_of_git_change_nothing(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config").write_text(
        "[diff]\n noprefix = true\n mnemonicPrefix = true\n external = false\n interHunkContext = 9\n context = 9\n"
        "[color]\n ui = always\n[core]\n quotePath = true\n[pager]\n diff = false\n"
    )
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "config"))
    (project / "a.py").write_text(TEXT.replace("b = 1", "b = 21").replace("d = 1", "d = 21"))
    assert shown(project, "--since", "main") == ["a.py:2", "a.py:4"]


def test_git_writes_nothing_into_the_repository(project: Path) -> None:
    index = project / ".git" / "index"
    before = index.read_bytes()
    os.utime(project / "b.py", (1, 1))  # git would note that it has looked at this file
    shown(project, "--since", "main")
    assert index.read_bytes() == before


@pytest.mark.parametrize("revision", ["nowhere", "--output=x", "main:a.py"])
def test_an_unknown_revision_is_one_sentence(project: Path, revision: str) -> None:
    done = bridge(project, "run", f"--since={revision}")
    assert done.returncode == 2
    assert done.stderr == (
        f"msp-bridge: git has no revision {revision!r} in {project}: if it is a remote branch, fetch it first\n"
    )
    assert not (project / "x").exists()


def test_a_history_without_a_common_ancestor_is_one_sentence(project: Path) -> None:
    git(project, "checkout", "--quiet", "--orphan", "other")
    commit(project, c=TEXT)
    done = bridge(project, "run", "--since", "main")
    assert done.returncode == 2
    assert "main and HEAD have no common ancestor here: if the clone is shallow" in done.stderr


def test_no_repository_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    root = tmp_path / "project"
    root.mkdir()
    script(root)
    done = bridge(root, "run", "--since", "main")
    assert done.returncode == 2
    assert done.stderr.startswith(
        f"msp-bridge: changes since a revision need a git repository around {root}: not a git repository"
    )
    assert done.stderr.count("\n") == 1


def test_lines_of_a_diff_that_look_like_headers_are_text() -> None:
    diff = b"diff --git a/a.sql b/a.sql\n--- a/a.sql\n+++ b/a.sql\n@@ -1 +1 @@\n--- @@ -9 +9 @@\n+++ b/x.py\n@@ -7,0 +8,2 @@\n+x\n+y\n"
    assert changed_lines(diff) == {"a.sql": [range(1, 2), range(8, 10)]}


def test_a_missing_line_end_is_no_line() -> None:
    diff = b"+++ b/a.py\n@@ -1 +1 @@\n-x\n\\ No newline at end of file\n+y\n\\ No newline at end of file\n+++ b/b.py\n@@ -0,0 +1 @@\n+z\n"
    assert changed_lines(diff) == {"a.py": [range(1, 2)], "b.py": [range(1, 2)]}


def mutant(start: tuple[int, int], end: tuple[int, int]) -> Mutant:
    return Mutant("a.py", "m", Location(Position(*start), Position(*end)), "")


@pytest.mark.parametrize(
    ("start", "end", "touched"),
    [
        ((4, 1), (4, 9), False),
        ((5, 1), (5, 9), True),
        ((1, 1), (9, 9), True),
        ((3, 1), (5, 1), False),
        ((7, 1), (7, 2), False),
    ],
)
def test_a_mutant_counts_when_one_of_its_lines_has_changed(
    start: tuple[int, int], end: tuple[int, int], touched: bool
) -> None:
    assert Changes({"a.py": [range(5, 7)]}).touch(mutant(start, end)) is touched
    assert Changes({"a.py": [EVERY_LINE]}).touch(mutant(start, end))
    assert not Changes({"b.py": [EVERY_LINE]}).touch(mutant(start, end))


@given(st.binary(max_size=200))
def test_no_diff_is_too_odd_to_be_read(diff: bytes) -> None:
    changed_lines(diff)
