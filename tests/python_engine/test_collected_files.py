"""Likely killers are run by a process that collects their files only; what these need from other files misleads nobody."""

from pathlib import Path

import pytest
from support.mutmut_trial import PACKAGE, Trial

from msp_bridge.adapter import Status

SOURCE = b"""NAMES = []


def named():
    note = "nobody looks at it"
    return NAMES, note


def limit(a):
    return a + 1


FOUND = named()
VALUE = limit(1)
"""
REGISTERS = """from pkg.m import NAMES

NAMES.append("a")
with open({imports!r}, "a") as file:
    file.write("a")


def test_a():
    assert NAMES
"""
NEEDS_IT = b"""from pkg.m import limit, named


def test_needs_a():
    assert named()[0]


def test_limit():
    assert limit(1) == 2
"""
NOT_COLLECTED_WITHOUT = b"""import time

from pkg.m import NAMES, named

assert NAMES


def test_c():
    time.sleep(0.1)  # so that it is less likely than `test_needs_a`
    assert named()
"""


ROWS = b"""import pytest

from pkg.m import limit


@pytest.mark.parametrize("number", range(500))
def test_row(number):
    assert limit(number) == number + 1


def test_other():
    assert True
"""
COUNTS = """def pytest_collection_finish(session):
    with open({counts!r}, "a") as file:
        file.write(f"{{len(session.items)}}\\n")
"""


def files(imports: Path) -> dict[str, bytes]:
    return {
        **PACKAGE,
        "pkg/m.py": SOURCE,
        "tests/test_a.py": REGISTERS.format(imports=str(imports)).encode(),
        "tests/test_b.py": NEEDS_IT,
        "tests/test_c.py": NOT_COLLECTED_WITHOUT,
    }


async def test_what_a_file_needs_from_another_kills_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MSP_BRIDGE_ISOLATION", "off")  # so that the file outside of the project is seen
    imports = tmp_path / "imports"
    async with Trial.of(files(imports), tmp_path) as trial:
        mutants = await trial.discover()
        named = [mutant for mutant in mutants if mutant.location.start.line < 8]
        limit = [mutant for mutant in mutants if mutant.location.start.line > 8]
        survived = await trial.test(named)
        assert {result.status for result in survived.values()} == {Status.SURVIVED}
        before = imports.read_text()
        killed = await trial.test(limit)
    assert {result.status for result in killed.values()} == {Status.KILLED}
    assert {result.killed_by for result in killed.values()} == {("tests/test_b.py::test_limit",)}
    assert imports.read_text() == before, "a test file was collected that has no likely killer"


async def test_of_a_parametrized_test_only_the_likely_rows_are_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSP_BRIDGE_ISOLATION", "off")
    counts = tmp_path / "counts"
    tree = {name: data for name, data in files(tmp_path / "imports").items() if not name.startswith("tests/")}
    tree["tests/test_rows.py"] = ROWS
    tree["tests/test_more.py"] = b"def test_more():\n    pass\n"
    tree["tests/conftest.py"] = COUNTS.format(counts=str(counts)).encode()
    async with Trial.of(tree, tmp_path) as trial:
        limit = [mutant for mutant in await trial.discover() if mutant.location.start.line > 8]
        results = (await trial.test(limit)).values()
    assert {result.status for result in results} == {Status.KILLED}
    first, *others = map(int, counts.read_text().split())
    assert first == 502
    assert {*others} <= {100, 1}, "likely killers; the control of one"
