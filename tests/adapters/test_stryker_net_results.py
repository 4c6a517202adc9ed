"""Results: every status with its details, live, each once, and what faults of the tool come to. Against the scripted dotnet."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest
from support.net_trees import Scripted, adapter_on, copied, discovered, results_of, scripted_dotnet, statuses

from msp_bridge.adapter import Result, Status, ToolError

SUMS = "src/Calc/Calc.cs"
ARITHMETIC = {
    "a - b": "Killed",
    "e - f": "NoCoverage",
    "g - h": "Survived",
    "i - j": "Timeout",
    "k - l": "CompileError",
    "m - n": "Ignored",
}


@pytest.fixture
def dotnet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scripted:
    return scripted_dotnet(tmp_path, monkeypatch)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return copied("net_calc", tmp_path)


def of(results: list[Result], replacement: str) -> Result:
    return next(result for result in results if result.mutant.replacement == replacement)


async def test_every_status_is_told(dotnet: Scripted, root: Path) -> None:
    async with adapter_on(root) as adapter:
        results = await results_of(adapter, await discovered(adapter))
    assert statuses(results) == ARITHMETIC
    assert len({result.mutant for result in results}) == len(results)


async def test_details_are_told_with_the_names_of_tests(dotnet: Scripted, root: Path) -> None:
    async with adapter_on(root) as adapter:
        results = await results_of(adapter, await discovered(adapter))
    killed, ignored = of(results, "c != d"), of(results, "m - n")
    assert killed.killed_by == ("Calc.Tests.Compares",)
    assert killed.covered_by == ("Calc.Tests.Compares",)
    assert killed.duration == 12
    assert killed.static is False
    assert of(results, "e - f").status_reason == "Not covered by any test."
    assert ignored.status_reason == "Ignored via code comment."


async def test_files_that_the_configuration_excludes_have_no_mutants(dotnet: Scripted, root: Path) -> None:
    async with adapter_on(root) as adapter:
        assert {mutant.path for mutant in await discovered(adapter)} == {SUMS, "src/Calc/Names.cs"}
        await results_of(adapter, (await discovered(adapter))[:1])
    assert dotnet.patterns(0) == ["**/*.cs{0..1}", "!**/Generated/*.cs"]
    assert dotnet.patterns(1)[1:] == ["!**/Generated/*.cs"]


async def test_a_result_arrives_before_the_run_ends(dotnet: Scripted, root: Path) -> None:
    async with adapter_on(root) as adapter:
        mutants = [mutant for mutant in await discovered(adapter, SUMS) if mutant.replacement in ("a - b", "g - h")]
        dotnet.say(gate=str(dotnet.gate))
        async with contextlib.aclosing(adapter.test(mutants)) as results:
            first = await anext(results)
            assert not dotnet.gate.exists()
            dotnet.gate.touch()
            rest = [result async for result in results]
    assert (first.mutant.replacement, first.status) == ("a - b", Status.KILLED)
    assert [result.mutant.replacement for result in rest] == ["g - h"]


async def test_mutants_that_need_no_test_come_first(dotnet: Scripted, root: Path) -> None:
    async with adapter_on(root) as adapter:
        results = await results_of(adapter, await discovered(adapter))
    untested = {Status.NO_COVERAGE, Status.COMPILE_ERROR, Status.IGNORED}
    first_tested = next(at for at, result in enumerate(results) if result.status not in untested)
    assert not untested & {result.status for result in results[first_tested:]}


async def test_the_run_ends_when_only_mutants_are_left_that_nobody_asked_for(dotnet: Scripted, root: Path) -> None:
    async with adapter_on(root) as adapter:
        mutants = await discovered(adapter, SUMS)
        [block] = [mutant for mutant in mutants if mutant.replacement == "{}" and mutant.location.start.line == 5]
        [inner] = [mutant for mutant in mutants if mutant.replacement == "a - b"]
        assert block.location.contains(inner.location)
        dotnet.say(gate=str(dotnet.gate))  # which is never opened: the inner mutant would wait for ever
        results = await results_of(adapter, [block])
        dotnet.say()
        assert statuses(await results_of(adapter, [inner])) == {"a - b": "Killed"}  # no assembly was left mutated
    assert [(result.mutant, result.status) for result in results] == [(block, Status.KILLED)]


@pytest.mark.parametrize("fault", ["no-stream", "broken-stream", "no-page", "half-page", "noise", "flood", "threshold"])
async def test_the_report_tells_what_the_stream_does_not(dotnet: Scripted, root: Path, fault: str) -> None:
    async with adapter_on(root) as adapter:
        mutants = await discovered(adapter)
        dotnet.say(fault=fault)
        results = await results_of(adapter, mutants)
    assert statuses(results) == ARITHMETIC
    assert len(results) == len(mutants)


async def test_a_stream_that_disagrees_with_the_report_is_logged(
    dotnet: Scripted, root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with adapter_on(root) as adapter:
        mutants = [mutant for mutant in await discovered(adapter) if mutant.replacement == "a - b"]
        dotnet.say(fault="lies")
        [result] = await results_of(adapter, mutants)
    assert result.status is Status.SURVIVED  # it went out, and can't be called back
    assert "the report says Killed" in caplog.text


async def test_the_report_is_asked_when_what_nobody_asked_for_is_done_too(
    dotnet: Scripted, root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with adapter_on(root) as adapter:
        found = await discovered(adapter, SUMS)
        block = next(mutant for mutant in found if mutant.replacement == "{}")  # what it holds is tested with it
        last = next(mutant for mutant in found if mutant.replacement == "c != d")
        dotnet.say(fault="lies")
        await results_of(adapter, [block, last])
    assert caplog.text.count("the report says Killed") == 2


FAILURES = {
    "crash": "No space left on device",
    "killed": "was killed (SIGKILL) before it had a report",
    "compile-error": "Initial build of targeted project failed: Calc.cs(3,5): error CS1002",
    "silent": "ended without a report: [07:20:01 ERR] Stryker.NET could not compile",
    "garbage": "a report that can't be read",
    "other-shape": "a report of an unknown shape",
    "not-restored": "run `dotnet tool restore`",
}


@pytest.mark.parametrize(("fault", "said"), FAILURES.items())
async def test_a_failure_is_one_clear_sentence_after_what_was_found_out(
    dotnet: Scripted, root: Path, fault: str, said: str
) -> None:
    async with adapter_on(root) as adapter:
        mutants = await discovered(adapter)
        dotnet.say(fault=fault)
        results: list[Result] = []
        with pytest.raises(ToolError) as failure:
            await results_of(adapter, mutants, into=results)
        assert said in str(failure.value)
        assert "\n" not in str(failure.value)
        assert len(str(failure.value)) < 1000
        told = statuses(results)
        assert told == {replacement: ARITHMETIC[replacement] for replacement in told}
        if fault in ("crash", "killed"):
            dotnet.say()
            assert statuses(await results_of(adapter, mutants)) == ARITHMETIC  # the assemblies are as they were built


@pytest.mark.parametrize("fault", ["compile-error", "silent", "garbage", "other-shape", "not-restored"])
async def test_a_failing_discovery_is_one_clear_sentence(dotnet: Scripted, root: Path, fault: str) -> None:
    async with adapter_on(root) as adapter:
        dotnet.say(fault=fault)
        with pytest.raises(ToolError) as failure:
            await discovered(adapter)
        assert FAILURES[fault] in str(failure.value)
        dotnet.say()
        assert await discovered(adapter)


async def test_a_report_is_not_missed_when_the_stream_has_told_everything(
    dotnet: Scripted, root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with adapter_on(root) as adapter:
        mutants = await discovered(adapter)
        dotnet.say(fault="mute")
        assert statuses(await results_of(adapter, mutants)) == ARITHMETIC
    assert "ended without a report" in caplog.text


async def test_everything_that_was_streamed_before_a_crash_is_told(dotnet: Scripted, root: Path) -> None:
    async with adapter_on(root) as adapter:
        mutants = [mutant for mutant in await discovered(adapter) if mutant.replacement in ("a - b", "g - h")]
        dotnet.say(fault="crash")
        results = adapter.test(mutants)
        assert (await anext(results)).mutant.replacement == "a - b"
        with pytest.raises(ToolError):
            await anext(results)


async def test_what_needs_git_is_left_out_of_the_configuration(dotnet: Scripted, root: Path) -> None:
    table = {"solution": "Calc.sln", "since": {"target": "main"}, "baseline": {}, "report-file-name": "ours"}
    (root / "stryker-config.json").write_text(json.dumps({"stryker-config": table}))
    async with adapter_on(root) as adapter:
        results = await results_of(adapter, await discovered(adapter))
    assert statuses(results) == ARITHMETIC | {"x - y": "NoCoverage"}


async def test_parts_that_the_configuration_excludes_are_ignored(dotnet: Scripted, root: Path) -> None:
    text = (root / SUMS).read_text()
    start = text.index("g + h")
    mutate = [f"!**/Calc.cs{{{start}..{start + 5}}}", "!**/Generated/*.cs"]
    (root / "stryker-config.json").write_text(json.dumps({"stryker-config": {"mutate": mutate}}))
    async with adapter_on(root) as adapter:
        results = await results_of(adapter, await discovered(adapter))
        [alone] = await results_of(adapter, [of(results, "g - h").mutant])
    assert statuses(results) == ARITHMETIC | {"g - h": "Ignored"}
    assert of(results, "g - h").status_reason == "Removed by mutate filter"
    assert (alone.status, alone.status_reason) == (Status.IGNORED, "File ignored by mutate filter")


async def test_a_mutant_that_the_tool_did_not_finish_is_a_runtime_error(dotnet: Scripted, root: Path) -> None:
    async with adapter_on(root) as adapter:
        mutants = [mutant for mutant in await discovered(adapter) if mutant.replacement in ("a - b", "g - h")]
        dotnet.say(fault="unfinished")
        results = await results_of(adapter, mutants)
    assert statuses(results) == {"a - b": "Killed", "g - h": "RuntimeError"}
    assert of(results, "g - h").status_reason == "Stryker.NET did not finish testing it"


async def test_the_tests_run_with_as_many_jobs_as_the_project_may_have(dotnet: Scripted, root: Path) -> None:
    allowed = [3]
    async with adapter_on(root, jobs=lambda: allowed[0]) as adapter:
        mutants = await discovered(adapter)
        allowed[0] = 1
        await results_of(adapter, mutants[:1])
    counts = [run["arguments"][run["arguments"].index("-c") + 1] for run in dotnet.runs]
    assert counts == ["3", "1"]


async def test_where_a_browser_would_open_all_results_come_at_the_end(
    dotnet: Scripted, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("msp_bridge.adapters.stryker_net.testing.CAN_STREAM", False)  # as on macOS
    async with adapter_on(root) as adapter:
        assert statuses(await results_of(adapter, await discovered(adapter))) == ARITHMETIC
    assert not any("open-report" in word for run in dotnet.runs for word in run["arguments"])


async def test_no_browser_opens(dotnet: Scripted, root: Path) -> None:
    async with adapter_on(root) as adapter:
        await results_of(adapter, await discovered(adapter))
    assert not dotnet.browser.exists()


async def test_a_project_that_is_not_installed_says_how(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = copied("net_repo", tmp_path)
    scripted_dotnet(tmp_path, monkeypatch)
    async with adapter_on(root) as adapter:
        with pytest.raises(ToolError, match="dotnet tool install -g dotnet-stryker"):
            await discovered(adapter)
