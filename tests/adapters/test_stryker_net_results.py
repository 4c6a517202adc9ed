"""Results by the tool itself, where test hosts can't be had, and what faults come to. Against the scripted dotnet."""

import asyncio
import contextlib
import os
from pathlib import Path

import pytest
from msp_bridge.adapters.stryker_net import preparation, vstest
from support.adapters import discovered, refusal
from support.cancelling import cancelled
from support.net_trees import VERDICTS, Scripted, adapter_on, chosen, host_files, results_of, started, statuses
from support.projects import copied
from support.servers import until

from msp_bridge.adapter import Notice, Result, Scope, Status, ToolError
from msp_bridge.testing import RunningProcesses

SUMS = "src/Calc/Calc.cs"
ARITHMETIC = {
    "a - b": "Killed",
    "e - f": "NoCoverage",
    "g - h": "Survived",
    "i - j": "Timeout",
    "k - l": "CompileError",
}
TOOL = {"engine": "tool"}


@pytest.fixture
def root(dotnet: Scripted, tmp_path: Path) -> Path:
    return copied("net_calc", tmp_path)


async def test_every_status_is_reported_by_test_hosts_and_mutants_that_need_none_start_nothing(
    dotnet: Scripted, root: Path
) -> None:
    async with adapter_on(root) as adapter:
        mutants = await discovered(adapter)
        untested = [mutant for mutant in mutants if mutant.replacement in ("e - f", "k - l")]
        assert statuses(await results_of(adapter, untested)) == {"e - f": "NoCoverage", "k - l": "CompileError"}
        assert len(dotnet.runs) == 1
        results = await results_of(adapter, mutants)
    assert statuses(results) == ARITHMETIC
    assert len({result.mutant for result in results}) == len(results)
    assert not dotnet.browser.exists()


async def test_every_status_is_reported_by_the_tool_whose_runs_take_the_exclusions_along(
    dotnet: Scripted, root: Path
) -> None:
    async with adapter_on(root, settings=TOOL) as adapter:
        mutants = await discovered(adapter)
        await results_of(adapter, chosen(mutants)[:1])
        results = await results_of(adapter, mutants)
    assert statuses(results) == ARITHMETIC
    assert len({result.mutant for result in results}) == len(results)
    assert dotnet.patterns(0) == ["**/*{0..1}", "!**/Generated/*.cs"]
    assert dotnet.patterns(1) == ["**/project/src/Calc/Calc.cs", "!**/Generated/*.cs"]
    assert not any("open-report" in word for run in dotnet.runs for word in run["arguments"])


async def test_where_a_browser_would_open_the_page_is_not_asked_for(
    dotnet: Scripted, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preparation, "HAS_PAGE", False)  # as on macOS
    async with adapter_on(root) as adapter:
        assert statuses(await results_of(adapter, await discovered(adapter))) == ARITHMETIC
    assert not any("open-report" in word for run in dotnet.runs for word in run["arguments"])


@pytest.mark.parametrize("fault", ["noise", "flood", "threshold"])
async def test_noise_and_a_score_below_the_threshold_are_no_failure(dotnet: Scripted, root: Path, fault: str) -> None:
    dotnet.say(fault=fault)
    async with adapter_on(root, settings=TOOL) as adapter:
        assert statuses(await results_of(adapter, await discovered(adapter))) == ARITHMETIC


HOSTS = {
    "silent": "the test host gives no answer",
    "garbage": "the test host sent what is no message",
    "old": "the test host offers version 1",
    "dies": "can't be run without a mutant (exit code 3",
    "empty": "the tests that Stryker.NET names are not found",
}


@pytest.mark.parametrize(("host", "problem"), HOSTS.items())
async def test_test_hosts_that_fail_give_way_to_the_tool(
    dotnet: Scripted, root: Path, monkeypatch: pytest.MonkeyPatch, host: str, problem: str
) -> None:
    if host == "silent":
        monkeypatch.setattr(vstest, "AGREE_S", 0.5)
    dotnet.say(host=host)
    async with adapter_on(root) as adapter:
        mutants = chosen(await discovered(adapter))
        for _ in range(2):
            notices: list[Notice] = []
            assert statuses(await results_of(adapter, mutants, notices=notices)) == VERDICTS
            [remark] = map(str, notices)
            assert problem in remark
            assert remark.endswith(": Stryker.NET itself tests the mutants")


async def test_tests_that_fail_in_the_host_of_the_sdk_are_run_in_their_own(
    dotnet: Scripted, root: Path, tmp_path: Path
) -> None:
    own, sdk = host_files(tmp_path / "own", 1, "9.0"), tmp_path / "sdk"
    host_files(sdk / "9.0.100-scripted", 2, "8.0")
    dotnet.say(host="foreign", own=str(own), sdk=str(sdk))
    async with adapter_on(root) as adapter:
        notices: list[Notice] = []
        mutants = chosen(await discovered(adapter))
        assert statuses(await results_of(adapter, mutants, notices=notices)) == VERDICTS
    [remark] = map(str, notices)
    assert "the tests that Stryker.NET names are not found" in remark  # as the own host, which is empty, says


async def test_discovery_begins_with_the_baseline_and_does_not_wait_for_it(dotnet: Scripted, root: Path) -> None:
    dotnet.say(host="silent")
    file = root / SUMS
    text, status = file.read_text(), file.stat()
    async with adapter_on(root) as adapter:
        for edited in (text, f"{text}// an edit\n", text):
            file.write_text(edited)
            running = RunningProcesses()
            assert await discovered(adapter)  # which ends the host of the discovery before it: that never answers
            await started(running, HOST)
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))


HOST = r"\S*python\S* \S*dotnet exec .*testhost"


async def test_the_last_request_that_is_cancelled_ends_the_baseline_that_discovery_has_begun(
    dotnet: Scripted, root: Path
) -> None:
    dotnet.say(host="silent")
    async with adapter_on(root) as adapter:
        running, results = RunningProcesses(), list[Result]()
        mutants = [mutant for mutant in await discovered(adapter) if mutant.replacement in ("a - b", "e - f")]
        host = await started(running, HOST)
        requests = [asyncio.create_task(results_of(adapter, mutants, into=results)) for _ in range(2)]
        await until(lambda: statuses(results) == {"e - f": "NoCoverage"} and len(results) == 2)
        await cancelled(requests[0])
        assert host in running.look()  # the other one would have to begin anew
        await cancelled(requests[1])
        assert await running.settled(0) == []


async def test_a_discovery_that_is_closed_begins_no_baseline(dotnet: Scripted, root: Path) -> None:
    dotnet.say(host="silent")
    async with adapter_on(root) as adapter:
        async with contextlib.aclosing(adapter.discover(Scope())) as mutants:
            await anext(mutants)
        assert len(asyncio.all_tasks()) == 1


FAILURES = {
    "crash": "No space left on device",
    "killed": "was killed (SIGKILL) before it had a report",
    "compile-error": "Calc.cs(3,5): error CS1002",
    "silent": "ended without a report: Stryker.NET could not compile",
    "garbage": "a report that can't be read",
    "other-shape": "a report of an unknown shape",
    "not-restored": "run `dotnet tool restore`",
}


async def test_a_failing_run_is_one_clear_sentence(dotnet: Scripted, root: Path) -> None:
    async with adapter_on(root, settings=TOOL) as adapter:
        mutants = chosen(await discovered(adapter))
        for fault, problem in FAILURES.items():
            dotnet.say(fault=fault)
            with pytest.raises(ToolError) as failure:
                await results_of(adapter, mutants)
            assert problem in str(failure.value), fault
            assert failure.value.remedy
            assert "\n" not in str(failure.value)
            assert len(str(failure.value)) < 1000
        dotnet.say()
        assert statuses(await results_of(adapter, mutants)) == VERDICTS


PREPARING = {
    **{fault: FAILURES[fault] for fault in ("compile-error", "silent", "not-restored")},
    "garbage": "a page that can't be read",
    "other-shape": "a report of an unknown shape",
    "no-page": "ended without a report",
    "half-page": "ended without a report",
}


async def test_a_failing_preparation_is_one_clear_sentence(dotnet: Scripted, root: Path) -> None:
    async with adapter_on(root) as adapter:
        for fault, problem in PREPARING.items():
            dotnet.say(fault=fault)
            with pytest.raises(ToolError) as failure:
                await discovered(adapter)
            assert problem in str(failure.value), fault
            assert failure.value.remedy
        dotnet.say()
        assert await discovered(adapter)


async def test_a_crash_in_the_logger_of_the_tool_is_by_chance_so_it_is_run_again(dotnet: Scripted, root: Path) -> None:
    dotnet.say(fault="logger")
    async with adapter_on(root) as adapter:
        assert await discovered(adapter)
    assert len(dotnet.runs) == 2


@pytest.mark.parametrize(
    ("fault", "remedy"),
    {"silent": 'add `"test-runner": "mtp"` to', "not-restored": "run `dotnet tool restore`"}.items(),
)
async def test_the_testing_platform_is_the_remedy_where_no_better_one_is_known(
    dotnet: Scripted, root: Path, fault: str, remedy: str
) -> None:
    project = root / "tests/Calc.Tests/Calc.Tests.csproj"
    project.write_text(project.read_text() + '<!-- <PackageReference Include="xunit.v3" /> -->\n')
    dotnet.say(fault=fault)
    error = await refusal(adapter_on(root), ToolError)
    assert error.remedy.startswith(remedy)


async def test_a_mutant_that_the_tool_did_not_finish_is_a_runtime_error(dotnet: Scripted, root: Path) -> None:
    async with adapter_on(root, settings=TOOL) as adapter:
        mutants = [mutant for mutant in await discovered(adapter) if mutant.replacement in ("a - b", "g - h")]
        dotnet.say(fault="unfinished")
        results = await results_of(adapter, mutants)
    assert statuses(results)["a - b"] == "Killed"
    assert {result.status for result in results} <= {Status.KILLED, Status.SURVIVED, Status.RUNTIME_ERROR}


async def test_the_tool_runs_with_as_many_jobs_as_the_project_may_have(dotnet: Scripted, root: Path) -> None:
    allowed = [3]
    async with adapter_on(root, jobs=lambda: allowed[0], settings=TOOL) as adapter:
        mutants = chosen(await discovered(adapter))
        allowed[0] = 1
        await results_of(adapter, mutants[:1])
    counts = [run["arguments"][run["arguments"].index("-c") + 1] for run in dotnet.runs]
    assert counts == ["3", "1"]
