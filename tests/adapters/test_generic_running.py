"""What the adapter makes of a tool's runs: a real tool, and one that follows a script for what no honest tool would do."""

import asyncio
import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from attrs import define
from msp_bridge.adapters.generic.discovery import GenericDiscovery
from support.adapters import discovered, refusal, results_of
from support.environments import program
from support.files import written
from support.generic_trees import Table, adapter_on, settings
from support.projects import copied
from support.servers import until

from msp_bridge.adapter import Finding, Mutant, Project, Result, Status, ToolError
from msp_bridge.source import SourceText

TOOL = Path(__file__).parents[1] / "support" / "scripted" / "report_tool.py"


async def test_the_results_are_those_of_the_tool_itself(tmp_path: Path) -> None:
    root = copied("generic_shop", tmp_path)
    async with adapter_on(root, settings(root)) as adapter:
        mutants = await discovered(adapter)
        results = await results_of(adapter, mutants)
    done = subprocess.run(["python3", "mutate.py", "out/r.json"], cwd=root, capture_output=True, text=True)
    assert done.returncode == 3, done.stderr
    files = json.loads((root / "out/r.json").read_bytes())["files"]
    expected = {
        (os.path.relpath(path, root), *_place(mutant["location"]["start"]), mutant["replacement"]): mutant["status"]
        for path, file in files.items()
        for mutant in file["mutants"]
    }
    assert {key_of(result): result.status.value for result in results} == expected
    assert {Status.KILLED, Status.SURVIVED, Status.IGNORED} == {result.status for result in results}


def key_of(result: Result) -> tuple[str, int, int, str]:
    mutant = result.mutant
    return mutant.path, mutant.location.start.line, mutant.location.start.column, mutant.replacement


def _place(position: dict[str, int]) -> tuple[int, int]:
    return position["line"], position["column"]


async def test_a_mutant_is_the_exact_text_of_the_mutated_file(tmp_path: Path) -> None:
    root = copied("generic_shop", tmp_path)
    async with adapter_on(root, settings(root)) as adapter:
        mutants = await discovered(adapter, "prices/money.py")
        source = SourceText.read(root / "prices/money.py")
    line = '    return "🍎 é" + str(total(price, count)) + "¢"'
    assert line in source.text
    expected = [line.replace(" + s", " - s"), line.replace(' + "', ' - "')]
    assert [source.apply(mutant) for mutant in mutants if mutant.location.start.line == 9] == [
        source.text.replace(line, mutated) for mutated in expected
    ]


async def test_a_result_has_all_that_the_report_has(tmp_path: Path) -> None:
    root = copied("generic_shop", tmp_path)
    async with adapter_on(root, settings(root)) as adapter:
        (mutant, *_) = await discovered(adapter, "prices/money.py")
        (result,) = await results_of(adapter, [mutant])
    assert mutant.description == "* becomes +"
    assert result == Result(
        mutant, Status.KILLED, covered_by=("the check",), status_reason="AssertionError", tests_completed=1
    )


# A tool that follows a script


@define
class Scripted:
    """A project with one file, a.txt, and a tool whose runs are scripts in `directory`."""

    root: Path
    directory: Path

    def table(self, **changes: Any) -> dict[str, Table]:
        command = [sys.executable, str(TOOL), str(self.directory)]
        table = {
            "files": ["*.txt"],
            "discover": [*command, "discover", "{report}", "{files}"],
            "test": [*command, "test", "{report}", "{ranges:;}", "{jobs}", "{root}"],
        }
        return {"tool": table | changes}

    def script(self, name: str, *steps: dict[str, Any]) -> None:
        (self.directory / f"{name}.json").write_text(json.dumps(steps))

    def runs(self) -> list[list[str]]:
        return [json.loads(line) for line in (self.directory / "log").read_text("utf-8").splitlines()]


@pytest.fixture(params=["overlay", "off"], ids=["isolated", "portable"])
def scripted(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Scripted:
    """Without temporary files of its own: the scripts lie among those."""
    monkeypatch.setenv("MSP_BRIDGE_ISOLATION", request.param)
    root, directory = tmp_path / "project", tmp_path / "directory"
    root.mkdir()
    directory.mkdir()
    (root / "a.txt").write_text("one two\n")
    project = Scripted(root, directory)
    project.script("discover", {"write": ["{0}", report()]})
    return project


def report(*statuses: str, **changes: Any) -> dict[str, Any]:
    """A report of two mutants of a.txt."""
    words = [(1, 4), (5, 8)]
    mutants = [
        {"id": str(at), "mutatorName": "Word", "replacement": "", "location": span(*words[at]), "status": status}
        for at, status in enumerate(statuses or ("Pending", "Pending"))
    ]
    return {"schemaVersion": "1", "files": {"a.txt": {"source": "one two\n", "mutants": mutants}}} | changes


def span(start: int, end: int) -> dict[str, Any]:
    return {"start": {"line": 1, "column": start}, "end": {"line": 1, "column": end}}


@pytest.mark.parametrize("waiting", ["await", "chat until"])
async def test_a_result_comes_while_the_tool_still_runs(scripted: Scripted, waiting: str) -> None:
    write = {"write": ["{0}", report("Killed", "Pending")]}
    scripted.script("test", write, {waiting: "gate"}, {"write": ["{0}", report("Killed", "Survived")]})
    async with adapter_on(scripted.root, scripted.table()) as adapter:
        first, second = await discovered(adapter)
        async with contextlib.aclosing(adapter.test([first, second])) as results:
            assert await anext(results) == Result(first, Status.KILLED)
            (scripted.directory / "gate").touch()
            assert [result async for result in results] == [Result(second, Status.SURVIVED)]


async def test_half_a_report_is_waited_for(scripted: Scripted) -> None:
    half = json.dumps(report("Killed", "Killed"))[:-40]
    ending = {"write": ["{0}", report("Killed", "Survived")]}
    scripted.script("test", {"write": ["{0}", half]}, {"touch": "half"}, {"await": "gate"}, ending)
    async with adapter_on(scripted.root, scripted.table()) as adapter:
        testing = asyncio.create_task(results_of(adapter, await discovered(adapter)))
        await until((scripted.directory / "half").exists)
        await asyncio.sleep(0.4)  # so that the half is looked at; the result is the same if it isn't
        assert not testing.done()
        (scripted.directory / "gate").touch()
        assert [result.status for result in await testing] == [Status.KILLED, Status.SURVIVED]


async def test_closing_ends_a_tool_that_would_never_end(scripted: Scripted) -> None:
    scripted.script("test", {"write": ["{0}", report("Killed", "Pending")]}, {"await": "never"})
    async with adapter_on(scripted.root, scripted.table()) as adapter:
        mutants = await discovered(adapter)
        async with contextlib.aclosing(adapter.test(mutants)) as results:
            assert (await anext(results)).status is Status.KILLED


async def test_only_the_mutants_of_the_request_are_reported(scripted: Scripted) -> None:
    scripted.script("test", {"write": ["{0}", report("Killed", "Survived")]})
    async with adapter_on(scripted.root, scripted.table()) as adapter:
        _, second = await discovered(adapter)
        assert await results_of(adapter, [second]) == [Result(second, Status.SURVIVED)]
    assert scripted.runs()[-1][3:5] == ["a.txt:1-1", "3"]


async def test_what_is_still_pending_at_the_end_was_not_tested(scripted: Scripted) -> None:
    scripted.script("test", {"write": ["{0}", report("Killed", "Pending")]})
    async with adapter_on(scripted.root, scripted.table()) as adapter:
        results = await results_of(adapter, await discovered(adapter))
    assert [result.status for result in results] == [Status.KILLED, Status.IGNORED]
    assert results[1].status_reason == "generic.tool ended without having tested it"


LONG = "\n".join(["the cause", *map(str, range(10_000)), "the end"])
WITHOUT_REPORT: list[tuple[list[dict[str, Any]], str]] = [
    (
        [{"err": "no such option"}, {"exit": 2}],
        r"there is no new report {report}; `.* exit code 2: no such option:",
    ),
    ([{"out": "said here"}, {"exit": 1}], r"there is no new report .* exit code 1: said here:"),
    ([], r"there is no new report .* exit code 0: it printed nothing: run the command by hand"),
    ([{"write": ["{0}", "{"]}], r"its report can't be read: Expecting property name"),
    ([{"write": ["{0}", "[]"]}], r"its report can't be read: the report is no object"),
    ([{"write": ["{0}", report("Killed", "Better")]}], r"unknown status 'Better'"),
    ([{"write": ["{0}", report(files={})]}, {"err": "tests fail"}, {"exit": 1}], r"has no mutant .*: tests fail:"),
    ([{"out": LONG}, {"exit": 1}], r"the cause(\n|.)* … (\n|.)*the end"),
]


async def test_a_report_counts_whatever_the_exit_code_and_no_report_is_a_clear_error(scripted: Scripted) -> None:
    async with adapter_on(scripted.root, scripted.table()) as adapter:
        mutants = await discovered(adapter)
        for code in (0, 1, 3):
            scripted.script("test", {"write": ["{0}", report("Killed", "Survived")]}, {"exit": code})
            results = await results_of(adapter, mutants)
            assert [result.status for result in results] == [Status.KILLED, Status.SURVIVED]
        for steps, says in WITHOUT_REPORT:
            scripted.script("test", *steps)
            with pytest.raises(ToolError, match=rf"^generic\.tool: .*{says}") as raised:
                await results_of(adapter, mutants)
            assert f"{TOOL} {scripted.directory} test" in str(raised.value)
            assert len(str(raised.value)) < 2000


async def test_a_program_that_is_not_there_is_a_clear_error(scripted: Scripted) -> None:
    table = scripted.table(discover=["no-such-tool", "{report}"])
    await refusal(adapter_on(scripted.root, table), ToolError, "can't run no-such-tool: there is no such program")


async def test_more_files_than_a_command_can_name_are_a_clear_error(scripted: Scripted) -> None:
    for number in range(800):
        (scripted.root / f"{number:0200}.txt").touch()
    command = ["true", "{report}", "{files:,}"]
    async with adapter_on(scripted.root, scripted.table(discover=command)) as adapter:
        with pytest.raises(
            ToolError, match=r"801 files are too many for one command: leave .files., .ranges. and .ids. out of it"
        ):
            await discovered(adapter)


async def test_an_old_report_in_the_project_is_never_taken_for_a_new_one(scripted: Scripted) -> None:
    (scripted.root / "out").mkdir()
    (scripted.root / "out" / "report.json").write_text(json.dumps(report("Killed", "Killed")))
    scripted.script("discover", {"write": ["out/2/report.json", report()]})
    scripted.script("test", {"exit": 0})
    async with adapter_on(scripted.root, scripted.table(report="out/**/report.json")) as adapter:
        mutants = await discovered(adapter)
        with pytest.raises(ToolError, match=r"there is no new report out/\*\*/report\.json"):
            await results_of(adapter, mutants)


async def test_a_tool_runs_in_a_private_copy(scripted: Scripted) -> None:
    scripted.script("test", {"write": ["a.txt", "spoilt"]}, {"write": ["{0}", report("Killed", "Killed")]})
    async with adapter_on(scripted.root, scripted.table()) as adapter:
        await results_of(adapter, await discovered(adapter))
        await results_of(adapter, await discovered(adapter))
    for _, directory, *_ in scripted.runs():  # isolated, the copy stands in the project's place
        assert Path(directory) != scripted.root or os.environ["MSP_BRIDGE_ISOLATION"] == "overlay"
        assert Path(directory).name == "project"
    assert (scripted.root / "a.txt").read_text() == "one two\n"
    assert scripted.runs()[-1][-1] == scripted.runs()[-1][1], "{root} is where it runs"


async def test_a_tool_that_writes_nothing_may_run_in_the_project(scripted: Scripted) -> None:
    scripted.script("test", {"write": ["{0}", report("Killed", "Killed")]})
    async with adapter_on(scripted.root, scripted.table(writes=False)) as adapter:
        await results_of(adapter, await discovered(adapter))
    assert {directory for _, directory, *_ in scripted.runs()} == {str(scripted.root)}


async def test_a_program_of_an_environment_that_is_not_copied_is_found(scripted: Scripted) -> None:
    program(scripted.root / "node_modules/tool", f"exec {sys.executable} {TOOL} {scripted.directory} discover $1")
    async with adapter_on(scripted.root, scripted.table(discover=["node_modules/tool", "{report}"])) as adapter:
        assert len(await discovered(adapter)) == 2


async def test_environments_are_copied_where_the_tool_needs_them(
    scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSP_BRIDGE_ISOLATION", "off")  # else a run finds them without a copy, at the project's own path
    names = ("node_modules/lib/index.js", ".venv/lib/x.py", ".venv/pyvenv.cfg", ".git/config")
    written(scripted.root, dict.fromkeys(names, ""))
    for environments in (False, True):
        scripted.script("discover", {"write": ["{0}", report("Pending", "Pending")]})
        async with adapter_on(scripted.root, scripted.table(environments=environments)) as adapter:
            await discovered(adapter)
        copy = Path(scripted.runs()[-1][1])
        found = {path.name for path in copy.rglob("*") if path.is_file()}
        assert {"index.js", "x.py", "pyvenv.cfg"} & found == (
            {"index.js", "x.py", "pyvenv.cfg"} if environments else set()
        )
        assert "config" not in found


@pytest.mark.parametrize("name", ["a.txt", "tool.conf"])
async def test_mutants_are_discovered_once_for_each_state_of_a_file_and_the_configuration(
    scripted: Scripted, name: str
) -> None:
    (scripted.root / "tool.conf").touch()
    async with adapter_on(scripted.root, scripted.table(), edited=True) as adapter:
        first = await discovered(adapter)
        assert await asyncio.gather(discovered(adapter), discovered(adapter, "a.txt")) == [first, first]
        assert len(scripted.runs()) == 1
        (scripted.root / name).write_text("two one\n")
        await discovered(adapter)
        await discovered(adapter)
    assert len(scripted.runs()) == 2


async def test_a_file_that_vanishes_while_others_are_looked_at_has_no_mutants(scripted: Scripted) -> None:
    scripted.script("discover", {"touch": "begun"}, {"await": "gate"}, {"write": ["{0}", report()]})
    table = scripted.table()
    table["tool"]["discover"].remove("{files}")
    async with adapter_on(scripted.root, table, edited=True) as adapter:
        one = asyncio.create_task(discovered(adapter, "a.txt"))
        await until((scripted.directory / "begun").exists)
        (scripted.root / "b.txt").write_text("one two\n")
        other = asyncio.create_task(discovered(adapter, "b.txt"))
        await asyncio.sleep(0.1)  # so that it waits for the first; the result is the same if it doesn't yet
        (scripted.root / "b.txt").unlink()
        (scripted.directory / "gate").touch()
        assert len(await one) == 2
        assert await other == []


async def test_files_are_named_to_the_tool_and_only_those_in_question(scripted: Scripted) -> None:
    (scripted.root / "b.txt").write_text("one two\n")
    async with adapter_on(scripted.root, scripted.table()) as adapter:
        await discovered(adapter, "b.txt")
        await discovered(adapter)
    assert [run[3:] for run in scripted.runs()] == [["b.txt"], ["a.txt"]]


async def test_the_doctor_shows_what_each_tool_lacks(scripted: Scripted) -> None:
    tables = scripted.table(test=["bin/tool", "{report}"]) | {
        "other": {**scripted.table()["tool"], "files": ["*.none"], "writes": False}
    }
    async with adapter_on(scripted.root, tables) as adapter:
        findings = [finding async for finding in adapter.diagnose()]
    correct = "install it, put its directory on PATH, or correct the command"
    in_place = "*.none: 0 files; runs in the project itself, as `writes = false` says"
    isolation = [finding for finding in findings if finding.text.startswith("isolated per run: ")]
    assert [finding.subject for finding in isolation] == ["generic.tool"]
    assert [finding for finding in findings if finding not in isolation] == [
        Finding(True, "generic.tool", sys.executable),
        Finding(False, "generic.tool", "there is no program bin/tool", correct),
        Finding(True, "generic.tool", "*.txt: 1 file; runs in a private copy"),
        Finding(True, "generic.other", sys.executable),
        Finding(False, "generic.other", in_place, "correct files"),
    ]


async def test_a_file_of_two_tools_belongs_to_the_first(scripted: Scripted) -> None:
    scripted.script("test", {"write": ["{0}", report("Killed", "Killed")]})
    table = scripted.table()["tool"]
    async with adapter_on(scripted.root, {"first": table, "second": table}) as adapter:
        mutants: list[Mutant] = await discovered(adapter)
        assert len(mutants) == 2
        assert len(await results_of(adapter, mutants)) == 2
    assert len(scripted.runs()) == 2


async def test_the_project_its_python_and_the_ids_are_placeholders(scripted: Scripted) -> None:
    scripted.script("test", {"write": ["{0}", report("Killed", "Survived")]})
    words = [*scripted.table()["tool"]["test"][:4], "{report}", "{ids:+}", "{project}", "{python}"]
    async with adapter_on(scripted.root, scripted.table(test=words)) as adapter:
        mutants = await discovered(adapter)
        await results_of(adapter, mutants)
        await results_of(adapter, mutants[1:])
    assert [run[3:] for run in scripted.runs()[1:]] == [[ids, str(scripted.root), "python3"] for ids in ("0+1", "1")]


async def test_a_report_without_a_known_mutant_never_loses_it(scripted: Scripted) -> None:
    scripted.script("test", {"write": ["{0}", report(files={})]})
    reason = "the report of generic.tool has no such mutant"
    for configured, status in (({}, Status.IGNORED), ({"missing": "NoCoverage"}, Status.NO_COVERAGE)):
        async with adapter_on(scripted.root, scripted.table(**configured)) as adapter:
            mutants = await discovered(adapter)
            results = await results_of(adapter, mutants)
            assert await discovered(adapter) == mutants
        assert [result.mutant for result in results] == mutants
        assert {(result.status, result.status_reason) for result in results} == {(status, reason)}


async def test_a_mutant_of_a_file_that_was_edited_gets_no_result_and_no_run(scripted: Scripted) -> None:
    async with adapter_on(scripted.root, scripted.table(), edited=True) as adapter:
        mutants = await discovered(adapter)
        (scripted.root / "a.txt").write_text("one two three\n")
        assert await results_of(adapter, mutants) == []
    assert len(scripted.runs()) == 1


async def test_a_file_that_cannot_be_read_is_an_error_with_advice(tmp_path: Path) -> None:
    (tmp_path / "round.py").symlink_to("round.py")  # as root may read any file, one in circles stands for it
    discovery = GenericDiscovery(cast(Project, SimpleNamespace(root=tmp_path)), *cast(Any, (None, None, None)))
    with pytest.raises(ToolError, match=r"^round\.py can't be read: .*: make it readable, or leave it out"):
        await discovery.mutants(["round.py"])
