"""Mutants of functions that a test file calls when it is imported are tested in forks of a server that holds it there."""

from pathlib import Path

import pytest
from support.mutmut_trial import PACKAGE, Trial
from support.programs import needs_guard

from msp_bridge.adapter import Result, Status

TRIES = 20
SOURCE = b"""def checked(name):
    return name + "!"


def quiet(name):
    note = "nobody looks at it"
    return name, note


START = "aa"
"""
FIRST = b"""import os

from pkg.m import START

os.environ["FIRST"] = str(os.getpid())


def test_start():
    assert START == "aa"
"""
CALLS = b"""import os

from pkg.m import checked, quiet

CASES = [checked("abc"), quiet("abc")]


def test_cases():
    here = "in this process" if os.environ["FIRST"] == str(os.getpid()) else "before the fork"
    assert CASES[0] in ("abc!", "abc?"), f"imported {here}"
    assert CASES[1][0] == "abc", f"imported {here}"
"""
OTHER = b"""def test_other():
    assert True
"""


def files(first: bytes = FIRST, calls: bytes = CALLS) -> dict[str, bytes]:
    return {**PACKAGE, "pkg/m.py": SOURCE, "tests/test_a.py": first, "tests/test_b.py": calls, "tests/test_c.py": OTHER}


def in_forks(results: dict[str, Result]) -> set[str]:
    """The mutants whose killer says that what precedes its file was imported before the fork."""
    return {name for name, result in results.items() if "before the fork" in (result.status_reason or "")}


def statuses(results: dict[str, Result]) -> dict[str, Status]:
    return {name: result.status for name, result in results.items()}


async def when_in_forks(trial: Trial) -> dict[str, Result]:
    """The results of the first time of which one says so: the first ones come while the server starts."""
    mutants = await trial.discover()
    results = first = await trial.test(mutants)
    for _ in range(TRIES):
        if in_forks(results):
            break
        results = await trial.test(mutants)
        assert statuses(results) == statuses(first)
    return results


def are_those_of_fresh_processes(results: dict[str, Result]) -> bool:
    survived = {name for name, status in statuses(results).items() if status is Status.SURVIVED}
    killed = {name for name, status in statuses(results).items() if status is Status.KILLED}
    quiet = {name for name in results if "quiet" in name}
    return bool(quiet and killed) and survived == quiet and killed == results.keys() - quiet


@pytest.mark.parametrize("isolation", ["", pytest.param("guard", marks=needs_guard)])
async def test_they_have_the_verdicts_of_fresh_processes_and_are_forks_of_another_server_after_an_edit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, isolation: str
) -> None:
    monkeypatch.setenv("MSP_BRIDGE_ISOLATION", isolation)
    async with Trial.of(files(), tmp_path) as trial:
        before = await when_in_forks(trial)
        trial.edit("pkg/m.py", 'name + "!"', 'name + "?"')
        after = await when_in_forks(trial)
    assert in_forks(before) == {"pkg.m.x_checked__mutmut_2"}
    assert are_those_of_fresh_processes(before)
    assert in_forks(after)
    assert are_those_of_fresh_processes(after)


THREAD = b"""
import threading

threading.Thread(target=threading.Event().wait, daemon=True).start()
"""
CHILD = b"""
import subprocess
import sys

CHILD = subprocess.Popen([sys.executable, "-c", ""])
"""
WAITS = b"""
import test_a

if hasattr(test_a, "CHILD"):
    os.waitpid(test_a.CHILD.pid, 0)  # is nobody's child in a fork
"""


WRITES = b"""
open(os.devnull, "w").close()  # ends a job with a guard
"""
SESSION_WRITES = b"""
import os


def pytest_sessionstart():
    open(os.devnull, "w").close()
"""


@pytest.mark.parametrize(
    ("first", "calls", "conftest", "isolation"),
    [
        pytest.param(FIRST + THREAD, CALLS + WAITS, b"", "", id="a thread"),
        pytest.param(FIRST + CHILD, CALLS + WAITS, b"", "", id="a process that is waited for"),
        pytest.param(FIRST, CALLS, b"", "off", id="one tree for all"),
        pytest.param(FIRST, CALLS + WRITES, b"", "guard", marks=needs_guard, id="a guard that ends the collection"),
        pytest.param(FIRST, CALLS, SESSION_WRITES, "guard", marks=needs_guard, id="a session whose start writes"),
    ],
)
async def test_where_files_before_have_started_what_no_fork_has_or_jobs_share_a_tree_none_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: bytes, calls: bytes, conftest: bytes, isolation: str
) -> None:
    monkeypatch.setenv("MSP_BRIDGE_ISOLATION", isolation)
    async with Trial.of({**files(first, calls), "tests/conftest.py": conftest}, tmp_path) as trial:
        mutants = await trial.discover()
        results = [await trial.test(mutants) for _ in range(3)]
    assert not any(map(in_forks, results))
    assert all(map(are_those_of_fresh_processes, results))


async def test_a_server_that_can_hold_nothing_does_not_do_what_comes_at_the_end_of_a_session(tmp_path: Path) -> None:
    note = tmp_path / "note"
    conftest = f"def pytest_sessionfinish():\n    open({str(note)!r}, 'w').close()\n".encode()
    project = {**files(FIRST + CHILD, CALLS + WAITS), "tests/conftest.py": conftest}
    async with Trial.of(project, tmp_path / "trial") as trial:
        mutants = await trial.discover()
        for _ in range(3):
            assert are_those_of_fresh_processes(await trial.test(mutants))
    assert not note.exists()
