"""Mutants that are tested while the tests still run without a mutant."""

import asyncio
from contextlib import aclosing
from pathlib import Path

import pytest
from support import programs
from support.mutmut_trial import PACKAGE, Trial
from support.servers import until

from msp_bridge.adapter import FailingTest, Result, Status
from msp_bridge.isolation import namespaces
from msp_bridge.notices import PhaseReport
from msp_bridge.phases import WHOLE_SUITE, heard_by

SOURCE = b"""def killed(a):
    return a + 1


def survives(a):
    print(a + 1)
"""
TESTS = """import os
import time

from pkg import m


def test_killed():
    assert m.killed(1) == 2


def test_survives():
    m.survives(1)


def test_long():
    while not os.path.exists({end!r}):
        time.sleep(0.01)
"""

pytestmark = pytest.mark.skipif(not namespaces.probe()[0], reason="mutants wait where they can't run side by side")


@pytest.fixture
def end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The long test ends when there is this file: mutants have the directory of temporary files in common."""
    monkeypatch.setenv("MSP_BRIDGE_ISOLATION", "overlay,net,pid")
    return tmp_path / "end"


def files(end: Path) -> dict[str, bytes]:
    tests = TESTS.format(end=str(end)).encode()
    return {**PACKAGE, "pkg/m.py": SOURCE, "tests/test_m.py": tests}


async def first_kill(trial: Trial, *, survivors: bool = True) -> Result:
    """`survivors`: they are tested, too."""
    mutants = [mutant for mutant in await trial.discover() if survivors or "survives" not in (mutant.description or "")]
    async with aclosing(trial.adapter.test(mutants)) as results:
        return await anext(results)


async def early_kill(trial: Trial, end: Path) -> Result:
    """The first result, which comes before the tests can end; the survivors come afterwards."""
    results: list[Result] = []
    async with aclosing(trial.adapter.test(await trial.discover())) as stream:
        async for result in stream:
            results.append(result)
            end.touch()
    assert {each.status for each in results if "survives" in (each.mutant.description or "")} == {Status.SURVIVED}
    return results[0]


READERS = """
import os
import time
from pathlib import Path
from pkg import m


def test_one():
    assert m.one(1) == 2


def test_text():
    assert "edited" not in Path(m.__file__).read_text()


def test_long():
    if "edited" in Path(m.__file__).read_text():
        while not os.path.exists({end!r}):
            time.sleep(0.01)
        if not os.path.exists({end!r} + ".died"):
            Path({end!r} + ".died").touch()
            os._exit(3)
"""


async def test_a_failing_test_is_told_also_where_it_is_measured_in_vain_after_the_last_kill(
    tmp_path: Path, end: Path
) -> None:
    """A test ends the process that measures, once: then all tests are measured anew, within this request."""
    tests = READERS.format(end=str(end)).encode()
    source = {**PACKAGE, "pkg/m.py": b"def one(x):\n    return x + 1\n", "tests/test_m.py": tests}
    async with asyncio.timeout(120), Trial.of(source, tmp_path) as trial:
        await trial.test()
        trial.edit("pkg/m.py", "x + 1", "x + 1  # edited")
        mutants, left, slot = await trial.discover(), [], trial.adapter._engine._slot
        async with aclosing(trial.adapter.test(mutants)) as stream:
            async for item in stream:
                left.append(item)
                if sum(isinstance(each, Result) for each in left) == len(mutants) and not end.exists():
                    end.touch()
                    await until(lambda: not slot.host.is_prepared)
        assert {each.status for each in left if isinstance(each, Result)} == {Status.KILLED}
        assert [notice.test for notice in left if isinstance(notice, FailingTest)] == ["tests/test_m.py::test_text"]


async def test_a_kill_waits_neither_for_all_tests_nor_is_it_lost(tmp_path: Path, end: Path) -> None:
    async with asyncio.timeout(120), Trial.of(files(end), tmp_path) as trial:
        early = await early_kill(trial, end)
        assert early.status is Status.KILLED
        assert early.killed_by == ("tests/test_m.py::test_killed",)
        assert early.covered_by is None  # not known yet


@programs.needs_guard
async def test_with_a_guard_a_kill_comes_before_the_measurement(
    tmp_path: Path, end: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The measurement yields for twice the time of the collection."""
    monkeypatch.setenv("MSP_BRIDGE_ISOLATION", "limits,guard")
    slow = b"import time\n\ndef pytest_collection_modifyitems():\n    time.sleep(5)\n"
    async with asyncio.timeout(120), Trial.of({**files(end), "conftest.py": slow}, tmp_path) as trial:
        early = await early_kill(trial, end)
        assert (early.killed_by, early.covered_by) == (("tests/test_m.py::test_killed",), None)


async def test_a_kill_does_not_wait_for_survivors_that_wait_for_all_tests(tmp_path: Path, end: Path) -> None:
    tree = files(end)
    survivors = b"".join(b"def survives_%d(a):\n    print(a + 1)\n\n\n" % number for number in range(3))
    tree["pkg/m.py"] = survivors + SOURCE
    calls = "".join(f"    m.survives_{number}(1)\n" for number in range(3)).encode()
    tree["tests/test_m.py"] = tree["tests/test_m.py"].replace(b"    m.survives(1)\n", b"    m.survives(1)\n" + calls)
    async with asyncio.timeout(120), Trial.of(tree, tmp_path) as trial:
        first, *_ = await trial.discover()
        assert "survives_0" in first.description  # more of these than there are jobs come before the kill
        assert (await first_kill(trial)).status is Status.KILLED


async def test_a_kill_of_code_that_something_knows_does_not_wait_for_all_tests(tmp_path: Path, end: Path) -> None:
    """It can't be put into live functions, as the job finds that was to run the tests which reach it."""
    tree = files(end)
    tree["tests/test_m.py"] += b"\n\nKNOWN = [m.killed.__code__]\n"
    async with asyncio.timeout(120), Trial.of(tree, tmp_path) as trial:
        assert (await early_kill(trial, end)).status is Status.KILLED


async def test_a_kill_of_code_that_runs_at_import_does_not_wait_for_all_tests(tmp_path: Path, end: Path) -> None:
    tree = files(end)
    tree["pkg/m.py"] += b"\n\nVALUE = killed(1)\n"
    async with asyncio.timeout(120), Trial.of(tree, tmp_path) as trial:
        early = await early_kill(trial, end)
        assert (early.status, early.killed_by) == (Status.KILLED, ("tests/test_m.py::test_killed",))
        assert (early.static, early.covered_by) == (True, None)  # not known yet


async def test_nor_does_it_wait_for_the_first_test_that_runs_it(tmp_path: Path, end: Path) -> None:
    """No test is measured before the long one; a likely one kills."""
    tree = files(end)
    tree["pkg/m.py"] = SOURCE.partition(b"\n\n\n")[0] + b"\n\n\nVALUE = killed(1)\n"
    head, *parts = tree.pop("tests/test_m.py").split(b"def test_")
    tree["tests/test_a.py"] = head + b"def test_" + parts[-1]
    tree["tests/test_m.py"] = head + b"def test_" + parts[0]
    async with asyncio.timeout(120), Trial.of(tree, tmp_path) as trial:
        first = await first_kill(trial)
        assert (first.status, first.static, first.covered_by) == (Status.KILLED, True, None)
        end.touch()


async def test_what_a_likely_test_has_run_that_takes_long_is_known_though_it_is_interrupted(
    tmp_path: Path, end: Path
) -> None:
    tree = files(end)
    head, *parts = tree.pop("tests/test_m.py").split(b"def test_")
    tree["tests/test_a.py"] = head + b"def test_" + parts[-1]  # no test is measured in its turn
    tree["tests/test_m.py"] = head + b"def test_killed():\n    assert m.killed(1) == 2\n    time.sleep(3)\n"
    async with asyncio.timeout(120), Trial.of(tree, tmp_path) as trial:
        assert (await first_kill(trial, survivors=False)).killed_by == ("tests/test_m.py::test_killed",)
        end.touch()


async def test_a_request_of_several_mutants_names_a_failing_test_that_is_found_after_the_last_kill(
    tmp_path: Path, end: Path
) -> None:
    tree = files(end)
    tree["tests/test_m.py"] += b"    raise RuntimeError\n"
    async with asyncio.timeout(120), Trial.of(tree, tmp_path) as trial:
        mutants = [mutant for mutant in await trial.discover() if "survives" not in mutant.description]
        assert len(mutants) > 1
        items: list[Result | FailingTest] = []
        async with aclosing(trial.adapter.test(mutants)) as stream:
            async for item in stream:
                items.append(item)
                if sum(isinstance(item, Result) for item in items) == len(mutants):
                    end.touch()
        assert {item.status for item in items if isinstance(item, Result)} == {Status.KILLED}
        assert [item.test for item in items if isinstance(item, FailingTest)] == ["tests/test_m.py::test_long"]


async def test_a_cancel_ends_the_run_of_all_tests_and_the_next_request_begins_it_again(
    tmp_path: Path, end: Path
) -> None:
    async with asyncio.timeout(120), Trial.of(files(end), tmp_path) as trial:
        assert (await first_kill(trial)).status is Status.KILLED  # the others are given up
        assert (await first_kill(trial)).status is Status.KILLED
        end.touch()
        assert {result.status for result in (await trial.test()).values()} == {Status.KILLED, Status.SURVIVED}


async def test_an_edit_during_the_first_run_of_all_tests_keeps_what_was_measured(tmp_path: Path, end: Path) -> None:
    count = tmp_path / "count"  # of the runs of a test that comes first; a survivor would run it, too
    tree = files(end)
    tree["pkg/number.py"] = tree.pop("pkg/m.py")
    tree["tests/test_a.py"] = f"def test_counted():\n    open({str(count)!r}, 'a').write('x')\n".encode()
    tree["tests/test_m.py"] = tree["tests/test_m.py"].replace(b"import m", b"import number as m")
    async with asyncio.timeout(120), Trial.of(tree, tmp_path) as trial:
        assert (await first_kill(trial, survivors=False)).status is Status.KILLED
        trial.edit("pkg/number.py", "    return a + 1\n", "    b = a\n    return b + 1\n")
        assert (await first_kill(trial, survivors=False)).status is Status.KILLED
        assert count.read_text() == "x"
        end.touch()
        assert {result.status for result in (await trial.test()).values()} == {Status.KILLED, Status.SURVIVED}


async def test_after_an_edit_a_kill_does_not_wait_for_the_tests_that_are_measured_again(
    tmp_path: Path, end: Path
) -> None:
    end.touch()
    slow = SOURCE + b"\n\ndef used(a):\n    return killed(a)\n"
    tests = files(end)["tests/test_m.py"].replace(b"def test_long():\n", b"def test_long():\n    m.used(1)\n")
    tree = {**files(end), "pkg/m.py": slow, "tests/test_m.py": tests}
    async with asyncio.timeout(120), Trial.of(tree, tmp_path) as trial:
        await trial.test()
        host = await trial.host()
        end.unlink()
        trial.edit("pkg/m.py", "    return a + 1\n", "    b = a\n    return b + 1\n")
        killed = await first_kill(trial)
        assert killed.status is Status.KILLED
        end.touch()
        assert await trial.host() == host


def where_the_first_run_waits(end: Path, begun: Path) -> dict[str, bytes]:
    """`files`, but the long test waits only where there is not yet the file `begun`, which it makes."""
    tree = files(end)
    first_waits = f"    if not os.path.exists({str(begun)!r}):\n        open({str(begun)!r}, 'w').close()\n"
    tree["tests/test_m.py"] = (
        tree["tests/test_m.py"]
        .replace(b"def test_long():\n", b"def test_long():\n" + first_waits.encode())
        .replace(b"    while not", b"        while not")
        .replace(b"        time.sleep", b"            time.sleep")
    )
    return tree


async def test_after_an_edit_a_survivor_does_not_wait_for_the_tests_that_are_measured_again(
    tmp_path: Path, end: Path
) -> None:
    end.touch()
    begun = tmp_path / "begun"
    tree = where_the_first_run_waits(end, begun)
    tree["tests/test_m.py"] += b"    m.survives(1)\n"
    async with asyncio.timeout(120), Trial.of(tree, tmp_path) as trial:
        await trial.test()
        end.unlink()
        begun.unlink()
        trial.edit("pkg/m.py", "    print(a + 1)\n", "    b = a\n    print(a + 1)\n")
        mutant = next(
            each for each in await trial.discover() if each.replacement == "-" and each.location.start.line == 7
        )
        async with aclosing(trial.adapter.test([mutant])) as results:
            early = await anext(results)
        assert isinstance(early, Result)
        assert (early.status, early.covered_by) == (Status.SURVIVED, None)  # by the suite, or by what is left of it
        end.touch()


async def test_a_survivor_does_not_wait_for_all_tests(tmp_path: Path, end: Path) -> None:
    tree = where_the_first_run_waits(end, tmp_path / "begun")
    async with asyncio.timeout(120), Trial.of(tree, tmp_path) as trial:
        mutant = next(mutant for mutant in await trial.discover() if "survives" in (mutant.description or ""))
        reports: list[PhaseReport] = []
        with heard_by(reports.append):
            async with aclosing(trial.adapter.test([mutant])) as results:
                early = await anext(results)
        assert isinstance(early, Result)
        assert {report.total for report in reports if report.name == WHOLE_SUITE} == {3}
        assert (early.status, early.covered_by, early.tests_completed) == (Status.SURVIVED, None, 4)
        end.touch()
        again = next(iter((await trial.test([mutant])).values()))
        assert (again.status, again.covered_by) == (Status.SURVIVED, ("tests/test_m.py::test_survives",))


async def test_the_next_process_knows_a_survivor_of_a_fresh_process(tmp_path: Path) -> None:
    source = b"def made():\n    a = 1\n    return 2\n\n\nMADE = made()\n"
    tests = b"import time\nfrom pkg import m\n\n\ndef test_it():\n    time.sleep(1.1)\n    assert m.MADE == 2\n"
    tree = {**PACKAGE, "pkg/m.py": source, "tests/test_m.py": tests}
    survived = []
    for _ in range(2):
        async with asyncio.timeout(120), Trial.of(tree, tmp_path) as trial:
            results = (await trial.test()).values()
            survived.append([result.tests_completed for result in results if result.status is Status.SURVIVED])
            assert Status.KILLED in {result.status for result in results}
    assert [set(counts) for counts in survived] == [{1}, {0}]
