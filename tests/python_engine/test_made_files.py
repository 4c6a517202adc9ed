"""What importing the project makes in its tree is there for tests, and not for a process that imports it anew."""

import os
import shutil
from pathlib import Path

import pytest
from support.mutmut_trial import Trial

from msp_bridge.adapter import Status
from msp_bridge.python_engine.programs.made_files import copy, made_by, made_in, remove

MAKES_A_SOCKET = {
    "pyproject.toml": b'[tool.mutmut]\nsource_paths = ["pkg"]\n[tool.pytest.ini_options]\npythonpath = ["."]\n',
    "pkg/m.py": b"""import os
import socket

os.makedirs("run", exist_ok=True)
with socket.socket(socket.AF_UNIX) as made:
    made.bind("run/socket")


def limit(a):
    return a + 1
""",
    "tests/test_m.py": b"""from pkg.m import limit


def test_limit():
    assert limit(1) == 2
""",
}

CORPUS = Path(__file__).parent.parent / "corpus"


async def test_it_is_there_after_an_edit(tmp_path: Path) -> None:
    shutil.copytree(CORPUS / "made_at_import", tmp_path / "project")
    async with Trial.of({}, tmp_path) as trial:
        before = await trial.test()
        trial.edit("subject/core.py", "number * 2", "2 * number")
        after = await trial.test()
        assert trial.notices == []
    for results in (before, after):
        for function in ("make", "level"):
            statuses = [result.status for name, result in results.items() if f"x_{function}_" in name]
            assert statuses.count(Status.KILLED) > len(statuses) / 2  # SQL in capitals survives


@pytest.mark.parametrize("isolation", ["on", "off"])
async def test_a_socket_among_it_can_not_be_copied(
    isolation: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if isolation == "off":
        monkeypatch.setenv("MSP_BRIDGE_ISOLATION", "off")
    async with Trial.of(MAKES_A_SOCKET, tmp_path) as trial:
        results = (await trial.test()).values()
        assert [str(notice).partition(": ")[2] for notice in trial.notices] == [
            "importing the project makes files that can't be copied"
        ]
    assert {result.status for result in results} == {Status.KILLED}


def test_each_call_that_makes_something_is_seen() -> None:
    here = os.getcwd()
    assert made_by("open", ("a", "w", os.O_WRONLY | os.O_CREAT)) == f"{here}/a"
    assert made_by("open", (b"a", None, os.O_RDWR)) == f"{here}/a"
    assert made_by("os.rename", (Path("a"), Path("b"), -1, -1)) == f"{here}/b"
    assert made_by("sqlite3.connect", (":memory:",)) == f"{here}/:memory:"  # where there is no such file
    assert made_by("open", ("a", "r", os.O_RDONLY)) is None
    assert made_by("open", (3, "w", os.O_WRONLY)) is None
    assert made_by("os.remove", ("a", -1)) is None


def test_what_the_users_tree_has_not_is_deleted_and_put_back(tmp_path: Path) -> None:
    place, pristine, kept = (tmp_path / name for name in ("place", "pristine", "kept"))
    for tree in (place, pristine):
        (tree / "pkg").mkdir(parents=True)
        (tree / "pkg" / "log").touch()
    (place / "pkg" / "new").write_text("n")
    (place / "out" / "deep").mkdir(parents=True)
    (place / "out" / "deep" / "file").write_text("f")
    (place / ".hypothesis" / "constants").mkdir(parents=True)
    paths = [str(place / name) for name in ("pkg/log", "pkg/new", "out", "out/deep", "gone", ".hypothesis/constants")]
    made = made_in(str(place), str(pristine), [*paths, str(tmp_path / "elsewhere")])
    assert made == ["out", "pkg/new"]
    copy(str(place), str(kept), made)
    remove(str(place), made)
    assert sorted(path.name for path in place.rglob("*")) == [".hypothesis", "constants", "log", "pkg"]
    copy(str(kept), str(place), made)
    assert (place / "out/deep/file").read_text() + (place / "pkg/new").read_text() == "fn"
