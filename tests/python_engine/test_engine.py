"""The engine on real projects: when it reloads, when it starts anew, and what it refuses."""

from __future__ import annotations

import pytest
from support.mutmut_trial import Trial

from msp_bridge.adapter import Status, ToolError

TABLE = b'[tool.mutmut]\nsource_paths = ["pkg"]\ntimeout_multiplier = 3\n'
SOURCE = b"""LIMIT = 3


def at_import(a):
    return a + LIMIT


VALUE = at_import(1)


def first(a):
    return a + 1


def second(a):
    return first(a) * 2
"""
TESTS = b"""from pkg.m import VALUE, first, second


def test_value():
    assert VALUE in (4, 5)


def test_first():
    assert first(1) == 2


def test_second():
    assert second(1) == 4
"""
FILES = {"pyproject.toml": TABLE, "pkg/__init__.py": b"", "pkg/m.py": SOURCE, "tests/test_m.py": TESTS}


def how(caplog: pytest.LogCaptureFixture) -> list[str]:
    """How each preparation was made: started or reloaded."""
    lines = [record.getMessage() for record in caplog.records if "the tests are ready" in record.getMessage()]
    return ["reloaded" if "reloaded" in line else "started" for line in lines]


async def test_an_edit_of_a_body_is_reloaded_and_judged_as_it_is(tmp_path, caplog):
    caplog.set_level("INFO")
    async with Trial.of(FILES, tmp_path) as trial:
        await trial.test()
        host = await trial.host()
        trial.edit("pkg/m.py", "    return a + 1\n", "    b = a\n    return b + 1\n")
        results = await trial.test()
        assert await trial.host() == host
        assert how(caplog) == ["started", "reloaded"]
        of_first = [result for name, result in results.items() if "x_first" in name]
        assert {result.status for result in of_first} == {Status.KILLED}
        assert {test for result in of_first for test in result.covered_by or ()} == {
            "tests/test_m.py::test_first",
            "tests/test_m.py::test_second",
        }
        of_second = [result for name, result in results.items() if "x_second" in name]
        assert {result.covered_by for result in of_second} == {("tests/test_m.py::test_second",)}


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("pkg/m.py", "LIMIT = 3", "LIMIT = 4"),
        ("pkg/m.py", "return a + LIMIT", "return LIMIT + a"),
        ("pkg/m.py", "def second(a):", "def second(a, b=0):"),
        ("tests/test_m.py", "assert first(1) == 2", "assert first(1) != 3"),
    ],
)
async def test_what_ran_at_import_needs_new_servers(tmp_path, caplog, path, old, new):
    caplog.set_level("INFO")
    async with Trial.of(FILES, tmp_path) as trial:
        await trial.host()
        trial.edit(path, old, new)
        await trial.host()
        assert how(caplog) == ["started", "started"]


async def test_an_edit_that_breaks_a_test_is_seen_at_once(tmp_path):
    async with Trial.of(FILES, tmp_path) as trial:
        await trial.host()
        trial.edit("pkg/m.py", "return a + 1", "return a + 2")
        results = await trial.test()
        assert {result.status for name, result in results.items() if "x_second" in name} <= {
            Status.SURVIVED,
            Status.NO_COVERAGE,
        }, "both tests that run it fail without a mutant"


async def test_a_copy_that_is_installed_elsewhere_is_refused_by_its_path(tmp_path):
    installed = tmp_path / "site"
    (installed / "pkg").mkdir(parents=True)
    (installed / "pkg/__init__.py").write_text("")
    (installed / "pkg/m.py").write_bytes(SOURCE)
    conftest = f"import sys\nsys.path.insert(0, {str(installed)!r})\n".encode()
    async with Trial.of({**FILES, "conftest.py": conftest}, tmp_path) as trial:
        with pytest.raises(ToolError, match=r"the tests import pkg/.* from .*site/pkg.*install the project editable"):
            await trial.test()


ORDERED = {
    "pyproject.toml": TABLE,
    "pkg/__init__.py": b"",
    "pkg/m.py": b"""SEEN = []


def remember(word):
    SEEN.append(word)
    return len(SEEN)


def last():
    return SEEN[-1] if SEEN else None
""",
    "tests/test_m.py": b"""from pkg import m


def test_remember():
    assert m.remember("a") == 1


def test_last():
    assert m.last() == "a"
""",
}


async def test_a_test_that_needs_another_is_not_run_before_it(tmp_path):
    """It has killed mutants of `last`, so it is likely to kill the next one; run first, it fails without a mutant too."""
    async with Trial.of(ORDERED, tmp_path) as trial:
        await trial.test()
        again = await trial.test()
        assert [name for name, result in again.items() if result.status is Status.SURVIVED] == [
            "pkg.m.x_last__mutmut_2"
        ]
