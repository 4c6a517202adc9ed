"""`run --since`: only what has changed in git, whatever kind of change that is."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.command_line import SCRIPT, bridge, script
from support.repositories import commit, git, isolate

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


def test_a_project_below_the_repositorys_root_has_its_own_paths(project: Path) -> None:
    inner = project / "packages" / "shop"
    inner.mkdir(parents=True)
    script(inner, mutations=[SCRIPT["mutations"][1]])
    commit(inner, a=TEXT)
    (inner / "a.py").write_text(TEXT.replace("c = 1", "c = 21"))
    (project / "a.py").write_text(TEXT.replace("d = 1", "d = 21"))
    assert shown(inner, "--since", "HEAD") == ["a.py:3"]


def test_git_writes_nothing_into_the_repository(project: Path) -> None:
    index = project / ".git" / "index"
    before = index.read_bytes()
    os.utime(project / "b.py", (1, 1))  # git would note that it has looked at this file
    shown(project, "--since", "main")
    assert index.read_bytes() == before
