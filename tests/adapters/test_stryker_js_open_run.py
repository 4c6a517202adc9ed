"""The run that stays open: more mutants of the same files are tested without starting anew, and nothing else changes."""

import contextlib
from collections.abc import Collection
from pathlib import Path

import psutil
import pytest
from msp_bridge.adapters.stryker_js import StrykerJs
from support.adapters import discovered, results_of
from support.servers import until
from support.stryker_js_trees import CORE9, adapter_on, configure, copied, running_with

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


def statuses(results: list[Result]) -> dict[Mutant, Status]:
    return {result.mutant: result.status for result in results}


async def gone(processes: Collection[psutil.Process]) -> None:
    """Returns when all have ended."""
    await until(lambda: not any(map(alive, processes)))


async def some_of(adapter: StrykerJs, path: str, count: int) -> list[Mutant]:
    return (await discovered(adapter, path))[:count]


async def test_it_starts_nothing_but_tests_until_files_or_jobs_are_others(starts: Path, tmp_path: Path) -> None:
    root = copied("js_command", tmp_path)
    check = root / "check.js"
    keep = (
        "const kept = '../../kept.txt'; // beside the sandbox\n"
        "if (process.env.__STRYKER_ACTIVE_MUTANT__) fs.readFileSync(kept); else fs.writeFileSync(kept, '');\n"
    )
    check.write_text(check.read_text().replace("const { clamp }", f"{keep}const {{ clamp }}"))
    jobs = [1]
    async with adapter_on(root, jobs=lambda: jobs[0]) as adapter:
        mutants = await discovered(adapter)
        whole = statuses(await results_of(adapter, mutants))
        assert set(whole.values()) == {Status.KILLED, Status.SURVIVED}, "what its tests wrote is there"
        assert whole[mutants[0]] is Status.KILLED
        expected = 1 + len(mutants)  # one without a mutant
        assert lines(starts) == expected
        for again in (mutants[2:5], mutants[:1], mutants[-1:]):
            assert statuses(await results_of(adapter, again)) == {mutant: whole[mutant] for mutant in again}
            expected += len(again)
            assert lines(starts) == expected
        jobs[0] = 2
        for again, more in ((mutants[:2], 1 + 2), (mutants[:1], 1)):
            await results_of(adapter, again)
            expected += more
            assert lines(starts) == expected
        check.write_text(check.read_text() + "process.exitCode = 0;\n")
        assert statuses(await results_of(adapter, mutants[:1])) == {mutants[0]: Status.SURVIVED}
        assert lines(starts) == expected + 1 + 1


async def test_of_several_runs_that_are_open_the_one_with_the_files_goes_on(starts: Path, tmp_path: Path) -> None:
    root = copied("js_command", tmp_path)
    (root / "src/other.js").write_text((root / "src/clamp.js").read_text())
    async with adapter_on(root) as adapter:
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


async def test_nothing_of_it_is_there_when_its_time_is_over(tmp_path: Path) -> None:
    root = copied("js_mocha", tmp_path)
    async with adapter_on(root, settings={"warm": 0.3}) as adapter:
        await results_of(adapter, await some_of(adapter, "lib/price.js", 1))
        await gone(workers())


async def test_no_time_at_all_lets_nothing_stay(tmp_path: Path) -> None:
    root = copied("js_mocha", tmp_path)
    async with adapter_on(root, settings={"warm": 0}) as adapter:
        mutants = await some_of(adapter, "lib/price.js", 3)
        for _ in range(2):
            assert statuses(await results_of(adapter, mutants)).keys() == set(mutants)
            assert workers() == []
            assert not list((tmp_path / "cache").rglob("sandbox-*"))


async def test_what_waits_has_run_no_mutant_and_what_is_killed_meanwhile_is_started_anew(
    every_case: bool, tmp_path: Path
) -> None:
    root = copied("js_mocha", tmp_path)
    async with adapter_on(root) as adapter:
        mutants = await some_of(adapter, "lib/price.js", 4)
        async with contextlib.aclosing(adapter.test(mutants)) as results:
            seen = [(result, workers()) async for result in results]
        first = statuses([result for result, _ in seen])
        used = {worker for _, now in seen[:-1] for worker in now}  # with the last result the next one may be there
        await gone(used)
        await until(lambda: bool(workers()))
        fresh = workers()
        assert statuses(await results_of(adapter, mutants[2:])) == {mutant: first[mutant] for mutant in mutants[2:]}
        assert set(fresh) & used == set() != used
        await gone(fresh)
        for victim in (WORKER, "stryker") if every_case else (WORKER,):
            await until(lambda victim=victim: bool(running_with(victim)))
            for process in (victims := running_with(victim)):
                process.kill()
            await gone(victims)
            assert statuses(await results_of(adapter, mutants)) == first


async def test_mutants_that_a_checker_refuses_are_so_each_time(tmp_path: Path) -> None:
    root = copied("js_mocha", tmp_path, CORE9)
    (root / "picky.mjs").write_text(CHECKER)
    configure(root, checkers=["picky"], plugins=["@stryker-mutator/mocha-runner", "./picky.mjs"])
    async with adapter_on(root) as adapter:
        mutants = [
            mutant for mutant in await discovered(adapter, "lib/price.js") if 3 <= mutant.location.start.line < 10
        ]
        refused = {mutant for mutant in mutants if mutant.replacement == "{}"}
        for _ in range(2):
            results = statuses(await results_of(adapter, mutants))
            assert results.keys() == set(mutants)
            assert {mutant for mutant, status in results.items() if status is Status.COMPILE_ERROR} == refused != set()
