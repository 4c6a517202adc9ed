"""Targets: what users select by paths, lines and places, and what has changed since a revision of git."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.repositories import commit, git, isolate

from msp_bridge.errors import ConfigurationError
from msp_bridge.model import Location, Mutant, Position
from msp_bridge.workspace.targets import EVERY_LINE, MAX_SHOWN, Changes, Revision, changed_lines, select

TEXT = "a = 1\nb = 1\nc = 1\nd = 1\ne = 1\n"


def mutant(start: tuple[int, int], end: tuple[int, int], path: str = "a.py") -> Mutant:
    return Mutant(path, "m", Location(Position(*start), Position(*end)), "")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory in which the process is, with two files and one above it."""
    root = tmp_path / "project"
    (root / "sub").mkdir(parents=True)
    for name in ("project/a.py", "project/a.py:1", "project/sub/b.py", "outside.py"):
        (tmp_path / name).write_text(TEXT)
    monkeypatch.chdir(root)
    return root


@pytest.fixture
def repository(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    isolate(monkeypatch)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(project.parent))
    git(project, "init", "--quiet", "--initial-branch=main")
    commit(project)
    return project


WHOLE_LINE = {(line, path): mutant((line, 1), (line, 6), path) for line in range(1, 6) for path in ("a.py", "sub/b.py")}


@pytest.mark.parametrize(
    ("paths", "taken"),
    [
        ([], [*WHOLE_LINE]),
        (["a.py"], [(line, "a.py") for line in range(1, 6)]),
        (["sub"], [(line, "sub/b.py") for line in range(1, 6)]),
        (["b.py:1-9"], [(line, "sub/b.py") for line in range(1, 6)]),
        (["a.py:1"], []),  # there is a file of that name
        (["a.py:2"], [(2, "a.py")]),
        (["a.py:2-3", "b.py:5"], [(2, "a.py"), (3, "a.py"), (5, "sub/b.py")]),
        (["a.py:2:1"], [(2, "a.py")]),
        (["a.py:2:2"], []),
        (["a.py:2:1", "b.py:5:1"], [(2, "a.py"), (5, "sub/b.py")]),
        (["a.py:2:1", "b.py:5:1", "sub"], [(2, "a.py"), *((line, "sub/b.py") for line in range(1, 6))]),
        (["a.py:2:1", "a.py:4"], [(2, "a.py"), (4, "a.py")]),
    ],
)
def test_paths_lines_and_places_are_selected_from_here_or_from_the_root(
    project: Path, monkeypatch: pytest.MonkeyPatch, paths: list[str], taken: list[tuple[int, str]]
) -> None:
    monkeypatch.chdir(project / "sub")
    selected = select(project, paths)
    found = [
        key for key, each in WHOLE_LINE.items() if selected.selection.scope.covers(each.path) and selected.takes(each)
    ]
    assert sorted(found) == sorted(taken)


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        (" ", "a path is empty"),
        ("gone.py", "there is no file or directory gone.py"),
        ("a.pi", "there is no file or directory a.pi; did you mean a.py?"),
        ("sub/b.pi:3", "there is no file or directory sub/b.pi; did you mean sub/b.py?"),
        ("gone/b.py", "there is no file or directory gone/b.py"),
        (
            "*.py",
            "there is no file or directory *.py; did you mean a.py?: patterns are not taken: name files and directories",
        ),
        ("../outside.py", "../outside.py lies outside the project ROOT; see --root"),
        ("a.py:0", "a.py:0: lines count from 1, the first before the last"),
        ("a.py:3-2", "a.py:3-2: lines count from 1, the first before the last"),
        ("a.py:3:0", "a.py:3:0: lines count from 1, the first before the last"),
        ("a.py:7", "a.py:7: the file has 6 lines"),
    ],
)
def test_a_path_that_selects_nothing_is_an_error(project: Path, path: str, problem: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        select(project, ["a.py", path])
    assert str(caught.value) == problem.replace("ROOT", str(project))


@pytest.mark.parametrize("path", ["a.py:1-1", "a.py:6", "a.py:6:1", "sub:9"])
def test_the_last_line_and_one_line_are_lines(project: Path, path: str) -> None:
    assert not select(project, [path]).selection.empty


def test_a_long_path_is_shown_in_part(project: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        select(project, ["x" * 2 * MAX_SHOWN])
    assert MAX_SHOWN < len(str(caught.value)) < MAX_SHOWN + 60


@pytest.mark.parametrize(
    ("name", "after", "lines"),
    [
        ("a.py", TEXT, None),
        ("a.py", None, None),
        ("a.py", TEXT.replace("e = 1", "e = 21"), [range(5, 6)]),
        ("a.py", TEXT.replace("b = 1\nc = 1", "b = 2\nc = 2").replace("e = 1", "e = 21"), [range(2, 4), range(5, 6)]),
        ("a.py", TEXT.replace("c = 1\n", ""), [range(2, 4)]),
        ("new.py", TEXT, [EVERY_LINE]),
        *(
            (name, TEXT, [EVERY_LINE])
            for name in ("two words.py", 'tab\tand"quote".py', "grüße.py", "back\\slash.py", "new\nline.py")
        ),
    ],
)
@pytest.mark.parametrize("known", [False, True])
async def test_changes_are_lines_of_files_as_they_are(
    repository: Path, name: str, after: str | None, lines: list[range] | None, known: bool
) -> None:
    if name != "a.py" and known:
        (repository / name).write_text(TEXT)
        commit(repository)
        after, lines = TEXT.replace("b = 1", "b = 21"), [range(2, 3)]
    if after is None:
        (repository / "a.py").unlink()
    else:
        (repository / name).write_text(after)
    if known:
        git(repository, "add", "--all")
    assert (await Changes.since(repository, "HEAD")).lines == ({} if lines is None else {name: lines})


async def test_a_renamed_file_has_changed_where_its_text_has(repository: Path) -> None:
    git(repository, "mv", "a.py", "renamed.py")
    (repository / "renamed.py").write_text(TEXT.replace("e = 1", "e = 21"))
    assert (await Changes.since(repository, "main")).lines == {"renamed.py": [range(5, 6)]}


async def test_neither_what_git_ignores_nor_what_others_have_done_meanwhile_has_changed(repository: Path) -> None:
    git(repository, "checkout", "--quiet", "-b", "branch")
    commit(repository, a=TEXT.replace("c = 1", "c = 21"))
    git(repository, "checkout", "--quiet", "main")
    commit(repository, a=TEXT.replace("a = 1", "a = 2"))
    git(repository, "checkout", "--quiet", "branch")
    (repository / ".git/info/exclude").write_text("ignored.py\n")
    (repository / "ignored.py").write_text(TEXT)
    assert (await Changes.since(repository, "main")).lines == {"a.py": [range(3, 4)]}


async def test_a_project_below_the_repositorys_root_has_its_own_paths(repository: Path) -> None:
    for name in ("a.py", "sub/b.py"):
        (repository / name).write_text(TEXT.replace("c = 1", "c = 21"))
    assert (await Changes.since(repository / "sub", "HEAD")).lines == {"b.py": [range(3, 4)]}


async def test_git_writes_nothing_into_the_repository(repository: Path) -> None:
    index = (repository / ".git/index").read_bytes()
    os.utime(repository / "a.py", (1, 1))  # git would note that it has looked at this file
    await Changes.since(repository, "main")
    await Revision.of(repository)
    assert (repository / ".git/index").read_bytes() == index


async def test_the_users_settings_of_git_change_nothing(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (repository.parent / "config").write_text(
        "[diff]\n noprefix = true\n mnemonicPrefix = true\n external = false\n interHunkContext = 9\n context = 9\n"
        "[color]\n ui = always\n[core]\n quotePath = true\n[pager]\n diff = false\n"
    )
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(repository.parent / "config"))
    (repository / "a.py").write_text(TEXT.replace("b = 1", "b = 21").replace("d = 1", "d = 21"))
    assert (await Changes.since(repository, "main")).lines == {"a.py": [range(2, 3), range(4, 5)]}


async def test_only_changed_lines_are_taken_of_what_is_selected(repository: Path) -> None:
    for name in ("a.py", "sub/b.py"):
        (repository / name).write_text(TEXT.replace("1", "2"))
    everything = await select(repository, []).since(repository, "HEAD")
    assert {target.path for target in everything.selection.targets or ()} == {"a.py", "sub/b.py"}
    some = await select(repository, ["a.py:2-3"]).since(repository, "HEAD")
    assert [line for line, path in WHOLE_LINE if path == "a.py" and some.takes(WHOLE_LINE[line, path])] == [2, 3]
    (repository / "a.py").write_text(TEXT)
    none = await select(repository, ["a.py"]).since(repository, "HEAD")
    assert not any(map(none.takes, WHOLE_LINE.values()))


@pytest.mark.parametrize("revision", ["nowhere", "--output=x", "main:a.py"])
async def test_an_unknown_revision_is_an_error(repository: Path, revision: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        await Changes.since(repository, revision)
    problem = f"git has no revision {revision!r} in {repository}"
    assert (caught.value.problem, caught.value.remedy) == (problem, "if it is a remote branch, fetch it first")
    assert not (repository / "x").exists()


async def test_a_history_without_a_common_ancestor_is_an_error(repository: Path) -> None:
    git(repository, "checkout", "--quiet", "--orphan", "other")
    commit(repository, c=TEXT)
    with pytest.raises(ConfigurationError) as caught:
        await Changes.since(repository, "main")
    assert (caught.value.problem, caught.value.remedy) == (
        "main and HEAD have no common ancestor here",
        "if the clone is shallow, as in CI, fetch the whole history first: git fetch --unshallow",
    )


async def test_no_repository_is_an_error(repository: Path) -> None:
    (repository / ".git").rename(repository / "git")
    problem = f"^changes since a revision need a git repository around {repository}: not a git repository"
    with pytest.raises(ConfigurationError, match=problem):
        await Changes.since(repository, "main")


def test_lines_of_a_diff_that_look_like_headers_are_text() -> None:
    diff = b"diff --git a/a.sql b/a.sql\n--- a/a.sql\n+++ b/a.sql\n@@ -1 +1 @@\n--- @@ -9 +9 @@\n+++ b/x.py\n@@ -7,0 +8,2 @@\n+x\n+y\n"
    assert changed_lines(diff) == {"a.sql": [range(1, 2), range(8, 10)]}


def test_a_file_that_is_gone_has_no_lines_and_gives_none_to_the_next() -> None:
    gone = b"diff --git a/a b/a\n--- a/a\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-x\n-y\n"
    assert changed_lines(gone) == {}
    other = b"diff --git a/b b/b\n--- a/b\n+++ b/b\n@@ -1 +1 @@\n-x\n+y\n"
    assert changed_lines(other + gone) == {"b": [range(1, 2)]}


def test_a_missing_line_end_is_no_line() -> None:
    diff = b"+++ b/a.py\n@@ -1 +1 @@\n-x\n\\ No newline at end of file\n+y\n\\ No newline at end of file\n+++ b/b.py\n@@ -0,0 +1 @@\n+z\n"
    assert changed_lines(diff) == {"a.py": [range(1, 2)], "b.py": [range(1, 2)]}


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
