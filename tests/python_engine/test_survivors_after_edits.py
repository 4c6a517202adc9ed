"""Survivors after an edit: which tests are run with them, and what becomes of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.mutmut_trial import Trial

from msp_bridge.adapter import Status

SOURCE = b"""SEEN = set()


def weak(a):
    SEEN.add(a)
    return a + 1


def other(a):
    return a * 2


def strong(a):
    return a - 1
"""
TESTS = b"""from pkg import m


def test_weak():
    assert m.weak(1)


def test_weak_and_other():
    assert m.weak(1) and m.other(1)


def test_other():
    assert m.other(1)


def test_strong():
    assert m.strong(1) == 0


def test_seen():
    assert m.SEEN != {2}
"""
FILES = {
    "pyproject.toml": b'[tool.mutmut]\nsource_paths = ["pkg"]\n',
    "pkg/__init__.py": b"",
    "pkg/m.py": SOURCE,
    "tests/test_m.py": TESTS,
}


@pytest.fixture
async def trial(tmp_path: Path) -> AsyncIterator[Trial]:
    """A server that knows all verdicts."""
    async with Trial.of(FILES, tmp_path) as trial:
        await trial.test()
        yield trial


async def verdicts_of(trial: Trial, function: str) -> dict[str, tuple[Status, int | None]]:
    """Of each mutant of the function, by its replacement: the verdict, and how many tests were run."""
    results = await trial.test([each for each in await trial.discover() if f"x_{function}_" in str(each.description)])
    return {str(found.mutant.replacement): (found.status, found.tests_completed) for found in results.values()}


async def test_the_tests_that_ran_the_function_are_run_again_with_what_survived_in_lines_that_are_the_same(
    trial: Trial,
) -> None:
    trial.edit("pkg/m.py", "    SEEN.add(a)\n", "    b = a\n    SEEN.add(b)\n")
    weak = await verdicts_of(trial, "weak")
    assert weak["2"] == (Status.SURVIVED, 2)
    assert weak["None"] == (Status.SURVIVED, 2 + 5), "its line is new: the tests that run it, and then all of them"


async def test_with_a_survivor_of_another_function_too(trial: Trial) -> None:
    trial.edit("pkg/m.py", "    SEEN.add(a)\n", "    b = a\n    SEEN.add(b)\n")
    assert await verdicts_of(trial, "other") == {"/": (Status.SURVIVED, 2), "3": (Status.SURVIVED, 2)}
    assert await verdicts_of(trial, "other") == {"/": (Status.SURVIVED, 2), "3": (Status.SURVIVED, 2)}


async def test_a_test_that_has_become_stronger_kills_it(trial: Trial) -> None:
    trial.edit("tests/test_m.py", "    assert m.other(1)\n\n\n", "    assert m.other(1) == 2\n\n\n")
    assert await verdicts_of(trial, "other") == {"/": (Status.KILLED, 1), "3": (Status.KILLED, 1)}
    trial.edit("tests/test_m.py", "    assert m.other(1) == 2\n\n\n", "    assert m.other(1)\n\n\n")
    assert {status for status, _ in (await verdicts_of(trial, "other")).values()} == {Status.SURVIVED}


async def test_where_the_suite_decides_on_each_survivor_it_does_so_after_an_edit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSP_BRIDGE_EXACT", "1")
    async with Trial.of(FILES, tmp_path) as trial:
        await trial.test()
        trial.edit("pkg/m.py", "    SEEN.add(a)\n", "    b = a\n    SEEN.add(b)\n")
        assert (await verdicts_of(trial, "weak"))["2"] == (Status.SURVIVED, 2 + 5)
