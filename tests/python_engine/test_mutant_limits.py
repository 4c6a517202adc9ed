"""A mutant that allocates, writes or forks without end gets a verdict; a limit that is too short gives none."""

import asyncio
from pathlib import Path

import pytest
from support.mutmut_trial import PACKAGE, Trial

from msp_bridge.adapter import Status
from msp_bridge.isolation import namespaces

SOURCE = b"""import subprocess


def fill(count):
    chunks = []
    while count > 0:
        chunks.append(bytearray(1 << 26))
        count -= 1
    return len(chunks)


def write(path, count):
    with open(path, "wb") as file:
        while count > 0:
            file.write(b"x" * (1 << 22))
            count -= 1


def start(count):
    children = []
    while count > 0:
        children.append(subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL))
        count -= 1
    for child in children:
        child.communicate(b"x")
    return len(children)
"""
TESTS = b"""from pkg import m


def test_fill():
    assert m.fill(1) == 1


def test_write(tmp_path):
    m.write(tmp_path / "f", 1)
    assert (tmp_path / "f").stat().st_size == 1 << 22


def test_start():
    assert m.start(1) == 1
"""
PAIR = b"def first():\n    return 1\n\n\ndef second():\n    return 2\n"
SET_UP = b"""import time

import pytest
from pkg import m


@pytest.fixture(scope="session")
def database():
    time.sleep(1.5)


def test_first(database):
    assert m.first() == 1


def test_second(database):
    assert m.second() == 2
"""
STOPPED = """import sys
import time

import pytest


def stop():
    functions = {id(time.monotonic), id(time.perf_counter), id(time.time)}
    for module in list(sys.modules.values()):
        for name, value in list(vars(module).items()):
            if id(value) in functions:
                setattr(module, name, lambda: 1.5e9)


"""
COUNT = b"def count(n):\n    while n:\n        n -= 1\n    return n\n"
FILES = {**PACKAGE, "pkg/m.py": SOURCE, "tests/test_m.py": TESTS}


@pytest.mark.skipif("overlay" not in namespaces.probe()[0], reason="this machine permits no world of its own")
async def test_a_mutant_that_uses_up_what_it_gets_is_killed_and_harms_no_other(tmp_path: Path) -> None:
    async with Trial.of(FILES, tmp_path) as trial:
        mutants = [mutant for mutant in await trial.discover() if mutant.replacement != "="]  # endless in the same way
        results = list((await trial.test(mutants)).values())
        endless = [result for result in results if result.mutant.replacement == "+="]
        assert len(endless) == 3
        assert {result.status for result in endless} <= {Status.KILLED, Status.TIMEOUT}
        assert Status.RUNTIME_ERROR not in {result.status for result in results}
        others = [result for result in results if ">=" in result.mutant.replacement]
        assert [result.status for result in others] == [Status.KILLED] * 3
        assert all("assert" in (result.status_reason or "") for result in others)


async def test_a_test_that_sets_up_more_alone_than_in_the_suite_is_not_over_its_limit(tmp_path: Path) -> None:
    limit = b"timeout_constant = 0.3\ntimeout_multiplier = 3\n"  # alone, test_second takes 1.5 s
    files = {**FILES, "pyproject.toml": FILES["pyproject.toml"] + limit, "pkg/m.py": PAIR, "tests/test_m.py": SET_UP}
    async with Trial.of(files, tmp_path) as trial:
        results = await trial.test()
        assert {result.status for result in results.values()} == {Status.KILLED}


@pytest.mark.parametrize(
    "when", ["stop()", "pytest.fixture(scope='session', autouse=True)(stop)"], ids=["in a conftest.py", "in a test"]
)
async def test_an_endless_mutant_is_over_its_limit_though_the_clock_of_the_tests_stands_still(
    tmp_path: Path, when: str
) -> None:
    """As freezegun stops it, in all modules that have its functions, for all tests of a class or of a session."""
    test = b"from pkg import m\n\n\ndef test_count():\n    assert m.count(3) == 0\n"
    conftest = f"{STOPPED}{when.replace('pytest.', 'stopped = pytest.', 1)}\n"
    files = {**PACKAGE, "pkg/m.py": COUNT, "tests/test_m.py": test, "tests/conftest.py": conftest.encode()}
    async with Trial.of(files, tmp_path) as trial, asyncio.timeout(60):
        endless = [mutant for mutant in await trial.discover() if mutant.replacement == "+="]
        assert [result.status for result in (await trial.test(endless)).values()] == [Status.TIMEOUT]
