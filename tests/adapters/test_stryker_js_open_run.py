"""The run that stays open: more mutants of the same files are tested without starting anew, and nothing else changes."""

from __future__ import annotations

import asyncio
import contextlib
import os
from pathlib import Path

import psutil
import pytest
from msp_bridge.adapters.stryker_js import StrykerJs
from support.stryker_js_trees import CORE9, adapter_on, configure, copied, discovered, results_of

from msp_bridge.adapter import Mutant, Result, Status
from msp_bridge.processes.sweep import alive

WORKER = "child-process-proxy-worker"
CHECKER = """
class Picky {
  async init() {}
  async check(mutants) {
    const verdict = ({ replacement }) => replacement === '{}' ? { status: 'compileError', reason: 'no' } : { status: 'passed' };
    return Object.fromEntries(mutants.map((mutant) => [mutant.id, verdict(mutant)]));
  }
}
export const strykerPlugins = [{ kind: 'Checker', name: 'picky', injectableClass: Picky }];
"""


def lines(file: Path) -> int:
    return len(file.read_text().splitlines())


def workers() -> list[psutil.Process]:
    """StrykerJS's processes that run tests."""
    return running_with(WORKER)


def running_with(word: str) -> list[psutil.Process]:
    """The processes below ours with an argument that is a file whose name begins with `word`."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):  # it has just ended
            if any(os.path.basename(argument).startswith(word) for argument in process.cmdline()):
                found.append(process)
    return found


def statuses(results: list[Result]) -> dict[Mutant, Status]:
    return {result.mutant: result.status for result in results}


async def gone(processes: list[psutil.Process]) -> None:
    """Returns when all have ended."""
    async with asyncio.timeout(60):
        while any(map(alive, processes)):
            await asyncio.sleep(0.02)


async def some_of(adapter: StrykerJs, path: str, count: int) -> list[Mutant]:
    return (await discovered(adapter, path))[:count]


async def test_more_mutants_of_the_same_files_start_nothing_but_their_tests(starts: Path, tmp_path: Path) -> None:
    root = copied("js_command", tmp_path)
    async with adapter_on(root, jobs=1) as adapter:
        mutants = await discovered(adapter)
        whole = statuses(await results_of(adapter, mutants))
        assert lines(starts) == 1 + len(mutants)
        some = statuses(await results_of(adapter, mutants[2:5]))
        again = statuses(await results_of(adapter, mutants[:1]))
        assert lines(starts) == 1 + len(mutants) + 3 + 1
    assert some == {mutant: whole[mutant] for mutant in mutants[2:5]}
    assert again == {mutants[0]: whole[mutants[0]]}


async def test_of_several_runs_that_are_open_the_one_with_the_files_goes_on(starts: Path, tmp_path: Path) -> None:
    root = copied("js_command", tmp_path)
    (root / "src/other.js").write_text((root / "src/clamp.js").read_text())
    async with adapter_on(root, jobs=1) as adapter:
        one, other = await some_of(adapter, "src/clamp.js", 2), await some_of(adapter, "src/other.js", 2)
        async with contextlib.aclosing(adapter.test(one)) as results:
            await anext(results)
            await results_of(adapter, other)  # the last that begins is the first to be idle
            await anext(results)
            with pytest.raises(StopAsyncIteration):
                await anext(results)
        before = lines(starts)
        await results_of(adapter, other[:1])
        await results_of(adapter, one[:1])
        assert lines(starts) == before + 2


async def test_results_of_a_run_that_goes_on_say_as_much_as_the_first(every_case: bool, tmp_path: Path) -> None:
    root = copied("js_mocha", tmp_path)
    async with adapter_on(root) as adapter:
        mutants = await discovered(adapter)
        first = {result.mutant: result for result in await results_of(adapter, mutants)}
        if not every_case:  # one of each status is as good
            mutants = list({result.status: mutant for mutant, result in first.items()}.values())
        again = [result for mutant in mutants for result in await results_of(adapter, [mutant])]
    assert [result.mutant for result in again] == mutants
    for result in again:
        before = first[result.mutant]
        assert result.status is before.status
        assert (result.covered_by, result.killed_by, result.static) == (
            before.covered_by,
            before.killed_by,
            before.static,
        )
        assert result.status_reason == before.status_reason
        assert (result.duration is None) == (before.duration is None)


async def test_what_its_tests_wrote_is_there_as_long_as_it_is_open(tmp_path: Path) -> None:
    root = copied("js_command", tmp_path)
    check = root / "check.js"
    keep = (
        "const kept = '../../kept.txt'; // beside the sandbox\n"
        "if (process.env.__STRYKER_ACTIVE_MUTANT__) fs.readFileSync(kept); else fs.writeFileSync(kept, '');\n"
    )
    check.write_text(check.read_text().replace("const { clamp }", f"{keep}const {{ clamp }}"))
    async with adapter_on(root, jobs=1) as adapter:
        mutants = await discovered(adapter)
        first = statuses(await results_of(adapter, mutants))
        assert Status.SURVIVED in first.values()
        assert statuses(await results_of(adapter, mutants)) == first


async def test_what_was_edited_meanwhile_counts(starts: Path, tmp_path: Path) -> None:
    root = copied("js_command", tmp_path)
    async with adapter_on(root, jobs=1) as adapter:
        mutants = await discovered(adapter)
        first = await results_of(adapter, mutants[:1])
        assert [result.status for result in first] == [Status.KILLED]
        check = root / "check.js"
        check.write_text(check.read_text() + "process.exitCode = 0;\n")
        second = await results_of(adapter, mutants[:1])
    assert [result.status for result in second] == [Status.SURVIVED]
    assert lines(starts) == 4


async def test_other_files_are_tested_by_another_run(tmp_path: Path) -> None:
    root = copied("js_mocha", tmp_path)
    async with adapter_on(root) as adapter:
        price, unicode = await some_of(adapter, "lib/price.js", 2), await some_of(adapter, "lib/unicode.js", 2)
        for mutants in (price, unicode, price, price + unicode, unicode):
            assert statuses(await results_of(adapter, mutants)).keys() == set(mutants)


async def test_more_jobs_than_the_run_has_are_given_by_another(starts: Path, tmp_path: Path) -> None:
    root = copied("js_command", tmp_path)
    async with adapter_on(root, jobs=2) as adapter:
        mutants = await discovered(adapter)
        await results_of(adapter, mutants[:1])
        await results_of(adapter, mutants[:2])
        assert lines(starts) == 1 + 1 + 1 + 2
        await results_of(adapter, mutants[:1])
        assert lines(starts) == 1 + 1 + 1 + 2 + 1


async def test_nothing_of_it_is_there_when_its_time_is_over(tmp_path: Path) -> None:
    root = copied("js_mocha", tmp_path)
    async with adapter_on(root, settings={"warm": 0.3}) as adapter:
        mutants = await some_of(adapter, "lib/price.js", 3)
        for _ in range(2):
            assert statuses(await results_of(adapter, mutants)).keys() == set(mutants)
            await gone(workers())


async def test_no_time_at_all_lets_nothing_stay(tmp_path: Path) -> None:
    root = copied("js_mocha", tmp_path)
    async with adapter_on(root, settings={"warm": 0}) as adapter:
        mutants = await some_of(adapter, "lib/price.js", 3)
        for _ in range(2):
            assert statuses(await results_of(adapter, mutants)).keys() == set(mutants)
            assert workers() == []
            assert not list((tmp_path / "cache").rglob("sandbox-*"))


@pytest.mark.parametrize("victim", [WORKER, "stryker"])
async def test_what_is_killed_meanwhile_is_started_anew(victim: str, tmp_path: Path) -> None:
    root = copied("js_mocha", tmp_path)
    async with adapter_on(root) as adapter:
        mutants = await some_of(adapter, "lib/price.js", 4)
        first = statuses(await results_of(adapter, mutants))
        victims = running_with(victim)
        assert victims
        for process in victims:
            process.kill()
        await gone(victims)
        assert statuses(await results_of(adapter, mutants)) == first


async def test_mutants_that_a_checker_refuses_are_so_each_time(tmp_path: Path) -> None:
    root = copied("js_mocha", tmp_path, CORE9)
    (root / "picky.mjs").write_text(CHECKER)
    configure(root, checkers=["picky"], plugins=["@stryker-mutator/mocha-runner", "./picky.mjs"])
    async with adapter_on(root) as adapter:
        mutants = [mutant for mutant in await discovered(adapter, "lib/price.js") if mutant.location.start.line < 14]
        refused = {mutant for mutant in mutants if mutant.replacement == "{}"}
        for _ in range(2):
            results = statuses(await results_of(adapter, mutants))
            assert results.keys() == set(mutants)
            assert {mutant for mutant, status in results.items() if status is Status.COMPILE_ERROR} == refused != set()


POLLUTED = """import assert from 'node:assert';
import fs from 'node:fs';
import { keep } from '../lib/keep.js';
it('keeps nothing', () => {
  assert.equal({}.kept, undefined);
  assert.ok(!fs.existsSync('kept.txt'));
  assert.equal(keep('x'), 'x');
  assert.equal({}.kept, undefined);
  assert.ok(!fs.existsSync('kept.txt'));
});
"""
IN_MEMORY, IN_A_FILE = "Object.prototype.kept = value;", "fs.writeFileSync('kept.txt', value);"


@pytest.mark.parametrize("statement", [IN_MEMORY, IN_A_FILE], ids=["in memory", "in a file"])
async def test_what_a_mutant_leaves_behind_reaches_no_later_request(statement: str, tmp_path: Path) -> None:
    root = copied("js_mocha", tmp_path)
    keep = f"import fs from 'node:fs';\nexport function keep(value) {{\n  if (value.length > 1) {{ {statement} }}\n"
    (root / "lib/keep.js").write_text(f"{keep}  return value;\n}}\n")
    (root / "test/keep.spec.js").write_text(POLLUTED)
    async with adapter_on(root, jobs=1) as adapter:
        mutants = await discovered(adapter, "lib/keep.js")
        (pollutes,) = [mutant for mutant in mutants if mutant.replacement == "true"]
        (harmless,) = [mutant for mutant in mutants if mutant.replacement == "false"]
        for _ in range(2):
            assert statuses(await results_of(adapter, [harmless])) == {harmless: Status.SURVIVED}
            assert statuses(await results_of(adapter, [pollutes])) == {pollutes: Status.KILLED}


async def test_the_processes_that_wait_for_the_next_request_have_run_no_mutant(tmp_path: Path) -> None:
    root = copied("js_mocha", tmp_path)
    async with adapter_on(root, jobs=1) as adapter:
        mutants = await some_of(adapter, "lib/price.js", 4)
        await results_of(adapter, mutants[:2])
        used = workers()
        await gone(used)
        async with asyncio.timeout(60):
            while not (fresh := workers()):
                await asyncio.sleep(0.02)
        await results_of(adapter, mutants[2:])
        assert not set(fresh) & set(used)
        await gone(fresh)
