"""Survivors after an edit: which tests are run with them, and what becomes of them."""

from pathlib import Path

import pytest
from support.mutmut_trial import PACKAGE, Trial

from msp_bridge.adapter import Status

SOURCE = b"""SEEN = set()


def weak(a):
    SEEN.add(a)
    return a + 1


def other(a):
    return a * 2


def strong(a):
    return a - 1


def chosen(a):
    if a > 5:
        return other(a)
    return 10
"""
TESTS = b"""import time

from pkg import m


def test_weak():
    assert m.weak(1)


def test_weak_and_other():
    assert m.weak(1) and m.other(1)


def test_other():
    assert m.other(1)


def test_strong():
    assert m.strong(1) == 0


def test_chosen():
    assert m.chosen(5) == 10


def test_seen():
    time.sleep(2.1)  # the suite decides on all survivors after an edit, were it short
    assert m.SEEN != {2}
"""
FILES = {**PACKAGE, "pkg/m.py": SOURCE, "tests/test_m.py": TESTS}


async def verdicts_of(trial: Trial, function: str, *replacements: str) -> dict[str, tuple[Status, int | None]]:
    """Of mutants of the function, by their replacements: the verdict, and how many tests were run."""
    found = [each for each in await trial.discover() if f"x_{function}_" in str(each.description)]
    results = await trial.test([each for each in found if each.replacement in replacements])
    return {str(found.mutant.replacement): (found.status, found.tests_completed) for found in results.values()}


async def test_the_tests_that_ran_the_edited_function_are_run_again_with_its_survivor(tmp_path: Path) -> None:
    async with Trial.of(FILES, tmp_path) as trial:
        assert (await verdicts_of(trial, "weak", "2"))["2"] == (Status.SURVIVED, 2 + 6)
        trial.edit("pkg/m.py", "    SEEN.add(a)\n", "    b = a\n    SEEN.add(b)\n")
        assert (await verdicts_of(trial, "weak", "2"))["2"] == (Status.SURVIVED, 2)


async def test_they_are_run_with_a_survivor_of_another_function_besides_its_own_tests(tmp_path: Path) -> None:
    async with Trial.of(FILES, tmp_path) as trial:
        assert (await verdicts_of(trial, "other", "3"))["3"] == (Status.SURVIVED, 2 + 6)
        trial.edit("pkg/m.py", "    SEEN.add(a)\n", "    b = a\n    SEEN.add(b)\n")
        assert (await verdicts_of(trial, "other", "3"))["3"] == (Status.SURVIVED, 3)
        assert (await verdicts_of(trial, "other", "3"))["3"] == (Status.SURVIVED, 2), "known again: its own tests"

        trial.edit("tests/test_m.py", "    assert m.other(1)\n\n\n", "    assert m.other(1) == 2\n\n\n")
        assert (await verdicts_of(trial, "other", "3"))["3"] == (Status.KILLED, 1)
        trial.edit("tests/test_m.py", "    assert m.other(1) == 2\n\n\n", "    assert m.other(1)\n\n\n")
        assert (await verdicts_of(trial, "other", "3"))["3"][0] is Status.SURVIVED


async def test_a_survivor_that_leads_into_an_edited_function_is_killed(tmp_path: Path) -> None:
    async with Trial.of(FILES, tmp_path) as trial:
        assert (await verdicts_of(trial, "chosen", ">="))[">="][0] is Status.SURVIVED
        trial.edit("pkg/m.py", "    return a * 2\n", "    return a * 4\n")
        assert (await verdicts_of(trial, "chosen", ">="))[">="][0] is Status.KILLED, "no test but its own"


async def test_where_the_suite_decides_on_each_survivor_it_does_so_after_an_edit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSP_BRIDGE_EXACT", "1")
    async with Trial.of(FILES, tmp_path) as trial:
        await verdicts_of(trial, "weak", "2")
        trial.edit("pkg/m.py", "    SEEN.add(a)\n", "    b = a\n    SEEN.add(b)\n")
        assert (await verdicts_of(trial, "weak", "2"))["2"] == (Status.SURVIVED, 2 + 6)


NEEDS_ANOTHER = b"""import time

import pytest

from pkg.m import area, volume

DONE = set()


def test_area():
    time.sleep(0.2)
    assert area(2, 3) == 6
    DONE.add("area")


def test_volume():
    if "area" not in DONE:
        pytest.skip("needs test_area")
    assert volume(2, 3, 4) == 24
"""


async def test_a_test_that_is_skipped_without_another_runs_after_it(tmp_path: Path) -> None:
    """As with pytest-dependency: before and after edits, alone it says nothing."""
    sizes = b"def area(a, b):\n    return a * b\n\n\ndef volume(a, b, c):\n    return a * b * c\n"
    files = {**PACKAGE, "pkg/m.py": sizes, "tests/test_m.py": NEEDS_ANOTHER}
    strong, weak = "    assert volume(2, 3, 4) == 24\n", "    assert volume(2, 3, 4)\n"
    async with Trial.of(files, tmp_path) as trial:
        assert {each.status for each in (await trial.test()).values()} == {Status.KILLED}
        for old, new, status in ((strong, weak, Status.SURVIVED), (weak, strong, Status.KILLED)):
            trial.edit("tests/test_m.py", old, new)
            found = [each for each in await trial.discover() if "x_volume_" in str(each.description)]
            assert {each.status for each in (await trial.test(found)).values()} == {status}
