"""Projects that are deleted, moved, broken and repaired while a server works on them."""

import asyncio
import contextlib
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.faulty_servers import served
from support.kits import MUTMUT, Kit, each_engine
from support.mutmut_trial import PACKAGE, Trial
from support.servers import mutants_of

from msp_bridge.adapter import Status, ToolError
from msp_bridge.python_engine import host_slot
from msp_bridge.testing import TreeState

HARMS = ("steady", "slow", "leave", "flood")


@each_engine
async def test_a_project_deleted_during_a_run_is_found_again_and_another_in_its_place_is_that_other(
    kit: Kit, tmp_path: Path
) -> None:
    root = kit.lay_out(tmp_path / "project", *HARMS)
    right = {harm: kit.status(harm) for harm in HARMS}
    async with served(kit, root, "--jobs", "1") as there:
        mutants = await there.mutants()
        names = {mutant["id"]: harm for harm, mutant in mutants.items()}
        chosen = {kit.source: {"mutants": list(mutants.values())}}
        running = await there.client.ask("mutationTest", {"mutants": chosen})
        await there.client.some_progress()
        shutil.rmtree(root)
        answer = await there.client.answer(running)
        assert answer.get("result") == {"files": {}} or str(root) in answer["error"]["message"]
        assert "error" not in answer or answer["error"]["code"] == -32803
        for _, result in there.client.take_results():
            assert result["status"] in (right[names[result["id"]]], "Ignored")
        refused = await there.refusal("discover")
        assert str(root) in refused
        kit.lay_out(root, *HARMS)
        assert await there.statuses() == right
        root.rename(tmp_path / "before")
        kit.lay_out(root, "steady", "leave")
        other = Path(kit.source).with_name(f"other{Path(kit.source).suffix}")
        (root / other).write_text((root / kit.source).read_text())
        tree = TreeState.of(root)
        found = mutants_of(await there.client.request("discover"))
        assert {path for path, _ in found} == {kit.source, other.as_posix()}
        assert await there.statuses() == {"steady": "Killed", "leave": kit.status("leave")}
    assert tree.differences(TreeState.of(root)) == []


async def test_red_tests_are_reported_until_they_are_green_and_a_source_that_is_no_code_spoils_no_other(
    tmp_path: Path,
) -> None:
    kit = MUTMUT  # `test_stryker_js_faults.py` has red suites, and `test_stryker_js_discovery.py` sources that are no code
    root = kit.lay_out(tmp_path / "project", "steady", "leave")
    source = root / kit.source
    text = source.read_text()
    other = source.with_name(f"other{source.suffix}")
    other.write_text(text)
    async with served(kit, root, "--jobs", "1") as there:
        right = {"steady": "Killed", "leave": kit.status("leave")}
        assert await there.statuses() == right
        tests, green = root / kit.tests, (root / kit.tests).read_text()
        tests.write_text(kit.red)
        refused = await there.refusal("mutationTest")
        assert "test_red" in refused
        assert "it is red" in refused
        assert mutants_of(await there.client.request("discover")), "discovery runs no test"
        tests.write_text(green)
        for broken in (b"def ((", b"\0" * 5000, b"\xff\xfe\xfd", b""):
            other.write_bytes(broken)
            found = mutants_of(await there.client.request("discover"))
            assert {path for path, _ in found} == {kit.source}
        assert await there.statuses() == right


RESTLESS = {
    **PACKAGE,
    "pkg/m.py": b"def f(a):\n    return a + 1\n",
    "pkg/other.py": b"def g(a):\n    return a + 1 + 1\n",
    "tests/test_m.py": b"import time\nfrom pkg.m import f\nfrom pkg.other import g\n\ndef test_both():\n"
    b"    time.sleep(0.6)  # longer than between two looks at the tree\n    assert (f(1), g(1)) == (2, 3)\n",
    "server.log": b"",
    "untouched.txt": b"",
}


@contextlib.contextmanager
def all_the_time(change: Callable[[int], object]) -> Iterator[None]:
    """`change`, called many times a second."""
    done = threading.Event()

    def run() -> None:
        number = 0
        while not done.wait(0.02):
            change(number := number + 1)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


async def test_a_log_that_grows_all_the_time_keeps_no_request_from_its_verdicts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_slot, "MOST_WAITING", 0)  # a mutant begins, and the tree is looked at, when another ends

    def change(number: int) -> None:
        with (trial.root / "server.log").open("a") as log:
            log.write("a request\n")
        (trial.root / "untouched.txt").touch()
        (trial.root / f"{number - 1}.tmp").unlink(missing_ok=True)
        (trial.root / f"{number}.tmp").touch()

    async with Trial.of(RESTLESS, tmp_path) as trial:  # two jobs: each look of one could end the other
        mutants = await trial.discover()
        with all_the_time(change):
            results = await trial.test(mutants)
        trial.write("server.log", "")
    assert len(results) == len(mutants)
    assert {result.status for result in results.values()} == {Status.KILLED}
    (remark,) = [str(notice) for notice in trial.notices if "changed again" in str(notice)]
    assert "server.log" in remark
    assert "untouched.txt" not in remark


async def test_a_source_that_changes_all_the_time_costs_its_own_mutants_alone(tmp_path: Path) -> None:
    def change(number: int) -> None:
        (tmp_path / "new").write_text(f"def f(a):\n    return a + 1  # {number}\n")
        (tmp_path / "new").replace(trial.root / "pkg/m.py")

    async with Trial.of(RESTLESS, tmp_path) as trial:  # two jobs: each look of one could end the other
        mutants = await trial.discover()
        with all_the_time(change):
            results = await trial.test(mutants)
        trial.write("server.log", "")
    tested = {result.mutant for result in results.values()}
    assert tested == {mutant for mutant in mutants if mutant.path == "pkg/other.py"}


WAITS = """import os, time
end = time.monotonic() + 60
while os.path.exists({root!r}) and time.monotonic() < end:
    time.sleep(0.01)
raise RuntimeError("what follows from that")
"""


async def test_nothing_else_is_said_of_a_project_that_goes_away_while_its_tests_are_collected(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    root, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
    project = {**RESTLESS, "conftest.py": WAITS.format(root=str(root)).encode()}
    async with Trial.of(project, tmp_path) as trial:
        running = asyncio.create_task(trial.test(await trial.discover()))
        while "collecting the tests" not in caplog.text:
            await asyncio.sleep(0.01)
        root.rename(elsewhere)
        with pytest.raises(ToolError, match="project is gone: open the project where it is now"):
            await running
        elsewhere.rename(root)
    assert "what follows from that" not in caplog.text
