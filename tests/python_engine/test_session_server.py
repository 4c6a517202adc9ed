"""Mutants that need a fresh import are tested in forks of a server that has loaded the conftest.py files already."""

from pathlib import Path

import pytest
from support.mutmut_trial import PACKAGE, Trial
from support.programs import needs_guard

from msp_bridge.adapter import Result, Status

SOURCE = b"""def made(name):
    return name + "a"


START = made("a")


def checked(name):
    return name + "!"
"""
TESTS = b"""import os

from pkg.m import START, checked


def test_start():
    here = "in this process" if os.environ["CONFTEST"] == str(os.getpid()) else "before the fork"
    assert START == "aa", f"conftest.py ran {here}"


def test_checked():
    assert checked("a") == "a!"
"""
CONFTEST = b"""import os

os.environ["CONFTEST"] = str(os.getpid())
"""


def files(conftest: bytes = b"", tests: bytes = b"") -> dict[str, bytes]:
    return {**PACKAGE, "conftest.py": CONFTEST + conftest, "pkg/m.py": SOURCE, "tests/test_m.py": TESTS + tests}


async def results_of(project: dict[str, bytes], folder: Path) -> dict[str, Result]:
    async with Trial.of(project, folder) as trial:
        return await trial.test(await trial.discover())


def where_conftest_ran(results: dict[str, Result]) -> set[str]:
    """As the test says that kills a mutant of what the import calls; all others are killed as well."""
    assert {result.status for result in results.values()} == {Status.KILLED}
    reasons = [result.status_reason or "" for result in results.values()]
    return {place for place in ("in this process", "before the fork") if any(place in reason for reason in reasons)}


async def test_its_jobs_have_the_verdicts_of_fresh_processes(tmp_path: Path) -> None:
    assert where_conftest_ran(await results_of(files(), tmp_path)) == {"before the fork"}


UNUSED = b"""

def unused():
    return 1
"""


@needs_guard
async def test_it_has_the_jobs_with_a_guard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once all tests are measured: NoCoverage waits for it. The project was saved just now: nothing has its bytecode."""
    monkeypatch.setenv("MSP_BRIDGE_ISOLATION", "guard")
    async with Trial.of({**files(), "pkg/m.py": SOURCE + UNUSED}, tmp_path) as trial:
        mutants = await trial.discover()
        unused = [mutant for mutant in mutants if "x_unused_" in mutant.description]
        assert {result.status for result in (await trial.test(unused)).values()} == {Status.NO_COVERAGE}
        others = [mutant for mutant in mutants if mutant not in unused]
        assert where_conftest_ran(await trial.test(others)) == {"before the fork"}


WRITES = b"""
open(os.devnull, "w").close()  # ends a job with a guard
"""


@pytest.mark.parametrize(
    ("isolation", "tests"), [("off", b""), pytest.param("guard", WRITES, marks=needs_guard)], ids=["off", "guard"]
)
async def test_it_has_no_job_of_which_something_may_stay(
    isolation: str, tests: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a directory that conftest.py has made, say: each fresh process makes its own."""
    monkeypatch.setenv("MSP_BRIDGE_ISOLATION", isolation)
    assert where_conftest_ran(await results_of(files(tests=tests), tmp_path)) == {"in this process"}


IMPORTS = b"import pkg.m\n"
READS = b"open('pkg/m.py').read()\n"
THREAD = b"import threading\n\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n"
OPENS = b"import tempfile\n\nLOG = open(tempfile.mkdtemp() + '/log', 'w')\n"
CONNECTS = b"import socket\n\nENDS = socket.socketpair()\n"
MEMORY = b"import mmap\n\nSHARED = mmap.mmap(-1, 8)\n"
PROCESS = b"import subprocess, sys\n\nsubprocess.run([sys.executable, '-c', ''])\n"
FORK_UNSAFE = b"""

def test_here():
    assert os.environ["CONFTEST"] == str(os.getpid())
"""


@pytest.mark.parametrize(
    "project",
    [*map(files, [IMPORTS, READS, THREAD, PROCESS, OPENS, CONNECTS, MEMORY]), files(tests=FORK_UNSAFE)],
    ids=["imports", "reads", "thread", "process", "file", "socket", "memory", "asked for its process"],
)
async def test_there_is_none_where_conftest_may_depend_on_a_mutant_or_share_more_than_memory(
    tmp_path: Path, project: dict[str, bytes]
) -> None:
    assert where_conftest_ran(await results_of(project, tmp_path)) == {"in this process"}


async def test_it_stays_after_an_edit_of_a_function(tmp_path: Path) -> None:
    async def of_measured(trial: Trial) -> dict[str, Result]:
        """Code that no test runs waits until all are measured: until then jobs are forks of the fresh server."""
        await trial.test(await trial.discover("pkg/spare.py"))
        return await trial.test(await trial.discover("pkg/m.py"))

    async with Trial.of(files() | {"pkg/spare.py": b"def spare():\n    return 1\n"}, tmp_path) as trial:
        first = await of_measured(trial)
        trial.edit("pkg/m.py", 'name + "!"', '"" + name + "!"')
        second = await of_measured(trial)
    assert where_conftest_ran(first) == where_conftest_ran(second) == {"before the fork"}


IMPORTED = b"""def test_late():
    from pkg.m import START

    assert START == "aa"
"""


async def test_a_test_that_conftest_has_imported_is_the_edited_one(tmp_path: Path) -> None:
    project = files() | {
        "tests/test_m.py": b"import pkg.m\n\n\ndef test_it():\n    assert pkg.m.checked('a') == 'a!'\n",
        "tests/conftest.py": b"import test_late\n",
        "tests/test_late.py": IMPORTED,
    }

    async def of_made(trial: Trial) -> set[Status]:
        return {result.status for name, result in (await trial.test()).items() if "x_made_" in name}

    async with Trial.of(project, tmp_path) as trial:
        assert await of_made(trial) == {Status.KILLED}
        trial.edit("tests/test_late.py", 'START == "aa"', "START is not None")
        assert Status.SURVIVED in await of_made(trial)
