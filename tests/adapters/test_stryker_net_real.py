"""Mutants of the real Stryker.NET, tested on a real solution, wherever `dotnet` and `dotnet-stryker` are on PATH."""

import asyncio
import contextlib
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from msp_bridge.adapters.stryker_net import StrykerNet, tool
from msp_bridge.adapters.stryker_net.hosts import Case, Hosts, Outcome
from msp_bridge.adapters.stryker_net.sdk import ORIGINAL
from support.adapters import discovered, project_at
from support.cancelling import cancelled
from support.files import written
from support.killed_bridges import killed_bridge, unlocked
from support.net_projects import (
    DATA,
    MSTEST_DATA,
    NUNIT_DATA,
    PROGRAM,
    REAL,
    STARTING,
    SUMS,
    XUNIT,
    XUNIT_DATA,
    everything,
    laid_out,
)
from support.net_trees import adapter_on, kill, of, outcomes, results_of

from msp_bridge.adapter import ToolError
from msp_bridge.source import SourceText
from msp_bridge.testing import RunningProcesses

pytestmark = [REAL, pytest.mark.timeout(1800)]
TEST_HOST = r"\S*dotnet exec .*testhost"
QUICK = ("5 - 5", "a - b", "total < Limit")  # of Sums.cs; they don't hang
EXPECTED = {
    ("Sums.cs", "5 - 5", "Killed"),
    ("Sums.cs", "a - b", "Killed"),
    ("Sums.cs", "total > Limit", "Killed"),
    ("Sums.cs", "total < Limit", "Killed"),
    ("Sums.cs", "a + 1", "NoCoverage"),
    ("Sums.cs", '(true?"x" + b :"y")', "Survived"),
    ("Sums.cs", '(false?"x" + b :"y")', "Survived"),
    ("Endless.cs", "n + 1", "Killed"),  # it overflows the stack
    ("Endless.cs", "Depth(n - 1) - 1", "Killed"),
    ("Endless.cs", ";", "Timeout"),
    ("Endless.cs", "i--", "Survived"),  # it wraps
    ("Odd.cs", "a / b", "Killed"),
}


@pytest.fixture(scope="module")
def solution(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Everything, prepared once: the tests share what is kept on disk."""
    root = everything(tmp_path_factory.mktemp("net") / "project")
    asyncio.run(prepare(root))
    return root


async def prepare(root: Path) -> None:
    async with adapter_on(root) as adapter:
        assert await discovered(adapter)


def no_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*_: object, **__: object) -> None:
        raise AssertionError("the tool was run again")

    monkeypatch.setattr(tool, "run", run)


async def test_each_framework_gives_the_verdicts_of_a_mutated_file(
    solution: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_runs(monkeypatch)
    wanted = {replacement for _, replacement, _ in EXPECTED}
    async with adapter_on(solution, jobs=2) as adapter:
        mutants = await discovered(adapter)
        chosen = [mutant for mutant in mutants if mutant.replacement in wanted]
        results = await results_of(adapter, chosen)
    assert len(results) == len(chosen) == len({result.mutant for result in results})
    assert outcomes(results) >= EXPECTED
    assert len(list((solution.parent / "cache").rglob(f"testhost.dll{ORIGINAL}"))) == 3  # that of the SDK ran the tests
    assert {Path(mutant.path).name for mutant in mutants} == {"Sums.cs", "Endless.cs", "Odd.cs"}  # and not LeftOut.cs
    assert not {'""', "a / 2"} & {mutant.replacement for mutant in mutants}  # by ignore-mutations, by a comment
    by_replacement = {result.mutant.replacement: result for result in results}
    assert by_replacement["a - b"].killed_by == by_replacement["a - b"].covered_by == ("SumsTests.Adds",)
    assert by_replacement["5 - 5"].static is True
    assert by_replacement["a + 1"].status_reason == "Not covered by any test."
    assert "Stack overflow" in str(by_replacement["n + 1"].status_reason)
    assert "had not ended after" in str(by_replacement[";"].status_reason)
    assert "Expected" in str(by_replacement["a / b"].status_reason)
    odd = by_replacement["a / b"].mutant
    source = SourceText.read(solution / odd.path)
    assert source.apply(odd) == source.text.replace("a * b", "a / b"), "whatever stands before it"


async def test_a_cancelled_request_leaves_no_process(solution: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    no_runs(monkeypatch)
    async with adapter_on(solution, jobs=2) as adapter:
        mutants = await discovered(adapter, "src/Calc/Endless.cs")
        for seed in range(3):
            running = RunningProcesses()
            testing = asyncio.create_task(results_of(adapter, mutants))
            await asyncio.sleep(random.Random(seed).uniform(0, 4))
            await cancelled(testing)
            left = [process for process in running.look() if "testhost" in " ".join(process.cmdline())]
            assert not left, f"cancelled with the seed {seed}"
        [result] = await results_of(adapter, [of(mutants, "Depth(n - 1) - 1")])
    assert result.status.value == "Killed"


async def test_a_test_host_that_is_killed_changes_no_verdict(solution: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    no_runs(monkeypatch)
    async with adapter_on(solution) as adapter:
        endless = of(await discovered(adapter, "src/Calc/Endless.cs"), ";")
        testing = asyncio.create_task(results_of(adapter, [endless]))
        await kill(RunningProcesses(), TEST_HOST)
        [result] = await testing
    assert result.status.value == "Timeout"


async def test_a_bridge_killed_while_it_tests_leaves_only_what_it_prepared(
    solution: Path, monkeypatch: pytest.MonkeyPatch, temporary: Path
) -> None:
    no_runs(monkeypatch)
    async with killed_bridge(StrykerNet, project_at(solution)) as bridge:
        await bridge.line()  # the first result
    assert list(temporary.iterdir()) == []
    await unlocked(solution.parent / "cache" / "prepared-0.lock")
    async with adapter_on(solution) as adapter:
        [result] = await results_of(adapter, [of(await discovered(adapter), "a - b")])
    assert result.status.value == "Killed"


async def test_no_mutant_is_started_while_the_next_result_is_not_awaited(
    solution: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_runs(monkeypatch)
    run, started = Hosts.run, []

    async def counted(hosts: Hosts, mutant: int | None, cases: Sequence[Case], *how: Any, **options: Any) -> Outcome:
        started.append(mutant)
        return await run(hosts, mutant, cases, *how, **options)

    monkeypatch.setattr(Hosts, "run", counted)
    async with adapter_on(solution) as adapter:
        mutants = [of(await discovered(adapter), replacement) for replacement in QUICK]
        async with contextlib.aclosing(adapter.test(mutants)) as results:
            await anext(results)
            await asyncio.sleep(3)  # some mutants' time
            assert 1 <= len(started) <= 2


async def test_mutants_of_programs_that_tests_start_have_verdicts(tmp_path: Path) -> None:
    root = written(laid_out(tmp_path / "project", {"Sums": SUMS}, {"xunit": STARTING}), PROGRAM)
    tests = root / "tests/xunit.Tests/xunit.Tests.csproj"
    reference = '<ProjectReference Include="../../src/Calc/Calc.csproj" />'
    tests.write_text(tests.read_text().replace(reference, reference + reference.replace("Calc", "Tool")))
    async with adapter_on(root, jobs=2) as adapter:
        mutants = await discovered(adapter, "src/Calc/Sums.cs")
        results = await results_of(adapter, [of(mutants, replacement) for replacement in ("a - b", "a + 1")])
    found = {result.mutant.replacement: result for result in results}
    assert (found["a - b"].status.value, found["a - b"].killed_by) == ("Killed", ("StartingTests.Adds",))
    assert found["a + 1"].status_reason == "Not covered by any test."


@pytest.mark.parametrize(
    ("tests", "options"),
    [
        ({"xunit": XUNIT_DATA, "nunit": NUNIT_DATA, "mstest": MSTEST_DATA}, ""),
        ({"xunit3": XUNIT_DATA}, '"test-runner": "mtp"'),
    ],
    ids=["VSTest", "Microsoft.Testing.Platform"],
)
async def test_data_of_tests_are_computed_with_the_mutant(
    tests: Mapping[str, str], options: str, tmp_path: Path
) -> None:
    root = laid_out(tmp_path / "project", {"Data": DATA}, tests, options)
    async with adapter_on(root, jobs=2) as adapter:
        mutants = await discovered(adapter, "src/Calc/Data.cs")
        results = await results_of(adapter, [of(mutants, text) for text in ("n / 2", "n <= 3", "n > 3")])
    found = {result.mutant.replacement: result.status.value for result in results}
    assert found == {"n / 2": "Survived", "n <= 3": "Survived", "n > 3": "Killed"}  # in the last, theories have no data


async def test_the_testing_platform_needs_a_setting_and_works_with_it(tmp_path: Path) -> None:
    root = laid_out(tmp_path / "project", {"Sums": SUMS}, {"xunit3": XUNIT})
    async with adapter_on(root) as adapter:
        with pytest.raises(ToolError, match='add `"test-runner": "mtp"`'):
            await discovered(adapter)
    (root / "stryker-config.json").write_text('{"stryker-config": {"test-runner": "mtp"}}')
    async with adapter_on(root, jobs=2) as adapter:
        mutants = await discovered(adapter, "src/Calc/Sums.cs")
        results = await results_of(adapter, [of(mutants, replacement) for replacement in (*QUICK, "a + 1")])
        found = {result.mutant.replacement: result for result in results}
        assert (found["a - b"].status.value, found["a - b"].killed_by) == ("Killed", ("SumsTests.Adds",))
        assert found["total < Limit"].status.value == found["5 - 5"].status.value == "Killed"
        assert found["a + 1"].status.value == "NoCoverage"
