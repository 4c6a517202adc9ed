"""`run --since`: only what has changed in git is tested, and named; `workspace/test_targets.py` has what that is."""

from pathlib import Path

import pytest
from support.command_line import SCRIPT, bridge, script
from support.repositories import commit, git, isolate

TEXT = "a = 1\nb = 1\nc = 1\nd = 1\ne = 1\n"


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    isolate(monkeypatch)


def shown(project: Path, revision: str) -> list[str]:
    """What `run` says first, and path and line of each mutant that it tests: all of them survive."""
    done = bridge(project, "run", "--since", revision)
    assert done.returncode == 0, done.stderr
    first, *rest = done.stdout.splitlines()
    survivors = [line.split()[1] for line in rest if line.startswith("Survived  ") and ".py:" in line]
    return [first, *sorted(survivor.rpartition(":")[0] for survivor in survivors)]


def test_committed_staged_and_unsaved_changes_are_tested_by_the_tools_whose_files_they_are(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet", "--initial-branch=main")
    for name in ("api", "docs", "web"):
        (tmp_path / name).mkdir()
        script(tmp_path / name, mutations=[SCRIPT["mutations"][1]])
        (tmp_path / name / "a.py").write_text(TEXT)
    commit(tmp_path)
    git(tmp_path, "checkout", "--quiet", "-b", "branch")
    commit(tmp_path / "api", a=TEXT.replace("b = 1", "b = 11"))
    (tmp_path / "web/a.py").write_text(TEXT.replace("d = 1", "d = 21"))
    git(tmp_path, "add", "web/a.py")
    (tmp_path / "web/b.py").write_text("e = 1\n")
    both = ["scripted in api/, scripted in web/: 4 mutants in 3 files", "api/a.py:2", "api/a.py:2"]
    assert shown(tmp_path, "main") == [*both, "web/a.py:4", "web/b.py:1"]
    assert shown(tmp_path, "HEAD") == ["scripted in web/: 2 mutants in 2 files", "web/a.py:4", "web/b.py:1"]
