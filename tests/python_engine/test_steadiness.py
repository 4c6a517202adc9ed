"""A test that fails by chance, or on a busy machine, kills no mutant by it, and is named."""

from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path

import pytest
from support.mutmut_trial import PACKAGE, Trial

from msp_bridge.adapter import Mutant, Status

SOURCE = b"""def f(a):
    note = "nobody looks at it"
    return a + 1, note
"""
# It fails once whenever there is the file `hiccup`; and while the host has more children than the server that it forks.
TEST = """import os, time
from pathlib import Path
from pkg.m import f

def parent(pid):
    return int(Path(f"/proc/{{pid}}/stat").read_text().rpartition(")")[2].split()[1])

def host():
    found = os.getpid()
    while Path(f"/proc/{{parent(found)}}/cmdline").read_bytes() == Path("/proc/self/cmdline").read_bytes():
        found = parent(found)
    return found

def test_f():
    time.sleep(0.02)
    assert f(1)[0] == 2
    assert len(Path(f"/proc/{{host()}}/task/{{host()}}/children").read_text().split()) == 1, "too slow"
    hiccup = Path({hiccup!r})
    if hiccup.exists():
        hiccup.unlink()
        raise AssertionError("too slow this time")
"""


def files(hiccup: Path) -> dict[str, bytes]:
    test = TEST.format(hiccup=str(hiccup)).encode()
    return {**PACKAGE, "pkg/m.py": SOURCE, "tests/test_m.py": test}


def times_told(trial: Trial) -> int:
    """How often requests have said that the test is unsteady."""
    what = "tests/test_m.py::test_f does not always pass without any mutant"
    return [str(notice).startswith(what) for notice in trial.notices].count(True)


def of_line(line: int, mutants: Sequence[Mutant]) -> list[Mutant]:
    return [mutant for mutant in mutants if mutant.location.start.line == line]


@pytest.fixture(autouse=True)
def _no_isolation(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the test sees the host, and the file outside of its project."""
    monkeypatch.setenv("MSP_BRIDGE_ISOLATION", "off")


async def test_a_test_that_fails_under_load_kills_nothing_by_that(tmp_path: Path) -> None:
    hiccup = tmp_path / "hiccup"
    async with Trial.of(files(hiccup), tmp_path) as trial:
        mutants = await trial.discover()
        seen, unseen = of_line(3, mutants), of_line(2, mutants)
        assert {result.status for result in (await trial.test(seen)).values()} == {Status.KILLED}
        assert times_told(trial) == 1
        hiccup.touch()
        assert {result.status for result in (await trial.test(unseen)).values()} == {Status.SURVIVED}
        assert not hiccup.exists()
        assert times_told(trial) == 2


async def test_the_doctor_names_a_test_that_fails_under_load(tmp_path: Path) -> None:
    async with Trial.of(files(tmp_path / "hiccup"), tmp_path) as trial:
        await trial.test((await trial.discover())[-1:])
        async with aclosing(trial.adapter.check_tests()) as found:
            findings = [finding async for finding in found]
    assert [finding.good for finding in findings] == [False]
    assert findings[0].text.startswith("tests/test_m.py::test_f fails under load: AssertionError: too slow")


async def test_the_next_process_knows_it_without_a_measurement(tmp_path: Path) -> None:
    hiccup = tmp_path / "hiccup"
    async with Trial.of(files(hiccup), tmp_path) as trial:
        await trial.test(of_line(3, await trial.discover()))
    hiccup.touch()
    async with Trial.of(files(hiccup), tmp_path) as trial:
        unseen = of_line(2, await trial.discover())
        assert {result.status for result in (await trial.test(unseen)).values()} == {Status.SURVIVED}
    assert times_told(trial) == 1


async def test_a_test_that_fails_by_chance_in_the_first_run_is_not_left_out(tmp_path: Path) -> None:
    hiccup = tmp_path / "hiccup"
    hiccup.touch()
    async with Trial.of(files(hiccup), tmp_path) as trial:
        mutants = await trial.discover()
        statuses = {result.mutant: result.status for result in (await trial.test()).values()}
    assert {statuses[mutant] for mutant in of_line(3, mutants)} == {Status.KILLED}
    assert {statuses[mutant] for mutant in of_line(2, mutants)} == {Status.SURVIVED}
    assert times_told(trial) == 1


async def test_a_test_that_does_not_run_the_mutant_kills_nothing_by_two_failures(tmp_path: Path) -> None:
    hiccups = tmp_path / "hiccups"
    test = f"""from pathlib import Path
from pkg.m import f

def test_f():
    assert f(1)[0] == 2

def test_other():
    hiccups = Path({str(hiccups)!r})
    if left := hiccups.read_text():
        hiccups.write_text(left[1:])
    assert not left
"""
    hiccups.touch()
    async with Trial.of({**files(hiccups), "tests/test_m.py": test.encode()}, tmp_path) as trial:
        mutants = await trial.discover()
        await trial.test(of_line(3, mutants))
        hiccups.write_text("..")  # in the whole suite, and alone with the mutant
        assert {result.status for result in (await trial.test(of_line(2, mutants)[:1])).values()} == {Status.SURVIVED}
    assert hiccups.read_text() == ""


async def test_what_only_a_fresh_process_passes_is_no_reason_for_no_coverage(tmp_path: Path) -> None:
    test = b"import os\nfrom pkg.m import f\nHERE = os.getpid()\n\ndef test_f():\n"
    test += b"    assert os.getpid() == HERE\n    assert f(1)[0] == 2\n\ndef test_g():\n    pass\n"
    async with Trial.of({**files(tmp_path), "tests/test_m.py": test}, tmp_path) as trial:
        mutants = await trial.discover()
        statuses = {result.mutant: result.status for result in (await trial.test()).values()}
    assert {statuses[mutant] for mutant in of_line(3, mutants)} == {Status.KILLED}
    assert {statuses[mutant] for mutant in of_line(2, mutants)} == {Status.SURVIVED}
