"""Reports and output in shapes that the scripted dotnet doesn't give: as the real tool wrote them, and worse."""

import json
from pathlib import Path
from typing import Any

import pytest
from msp_bridge.adapters.stryker_net.report import FILTERED, Report, ReportEntry
from msp_bridge.adapters.stryker_net.setup import StrykerNetConfiguration, platform_line
from msp_bridge.adapters.stryker_net.tool import failure

from msp_bridge.adapter import ConfigurationError, Location, Position, Status, ToolError

ROOT = Path("/home/dev/copy")
SOURCE = "\N{ZERO WIDTH NO-BREAK SPACE}namespace Calc;\r\npublic class Zero { public bool Is(int x) => x == 0; }\r\n"
KNOWN, UNKNOWN = "6b0b5f0e-0000-0000-0000-000000000001", "6b0b5f0e-0000-0000-0000-000000000002"


def place(line: int, start: int, end: int) -> dict[str, Any]:
    return {"start": {"line": line, "column": start}, "end": {"line": line, "column": end}}


def read(*mutants: dict[str, Any], listing: bool = False, ranges: bool = False, **files: Any) -> list[Any]:
    content = {
        "schemaVersion": "2",
        "projectRoot": str(ROOT),
        "files": {f"{ROOT}/src/Zero.cs": {"language": "cs", "source": SOURCE, "mutants": list(mutants)}, **files},
        "testFiles": {"/t.cs": {"language": "cs", "tests": [{"id": KNOWN, "name": "Tests.Zero"}]}},
    }
    return list(Report.of(content, ROOT).entries({"src/Zero.cs": "digest"}, listing=listing, ranges=ranges))


def entries(*mutants: dict[str, Any], **more: Any) -> list[ReportEntry]:
    return [entry for entry in read(*mutants, **more) if isinstance(entry, ReportEntry)]


def mutant(**fields: Any) -> dict[str, Any]:
    return {
        "id": "7",
        "mutatorName": "Equality mutation",
        "replacement": "x != 0",
        "location": place(2, 46, 52),
        "status": "Killed",
        "coveredBy": [KNOWN, UNKNOWN],
        "killedBy": [KNOWN],
        **fields,
    }


def test_a_mutant_is_read_from_the_report() -> None:
    [entry] = entries(mutant())
    found = entry.mutant
    assert (found.path, found.mutator, found.replacement) == ("src/Zero.cs", "Equality mutation", "x != 0")
    assert found.location == Location(Position(2, 46), Position(2, 52))
    assert (found.handle, entry.id, entry.covered_by) == ("digest", 7, (KNOWN, UNKNOWN))
    assert entry.result.killed_by == ("Tests.Zero",)
    assert entry.result.covered_by == ("Tests.Zero", UNKNOWN)


def test_what_does_not_compile_in_a_file_that_mutate_excludes_is_not_listed() -> None:
    broken, filtered = mutant(status="CompileError"), mutant(status="Ignored", statusReason=FILTERED)
    assert [entry.status for entry in entries(filtered, broken)] == [Status.IGNORED]
    by_comment = mutant(status="Ignored", statusReason="Ignored via code comment.")
    assert [entry.status for entry in entries(filtered, by_comment, broken)] == [Status.IGNORED] * 2
    for others in ([], [mutant()], [filtered, by_comment]):  # a range of the file, or all of it, may be mutated
        assert Status.COMPILE_ERROR in [entry.status for entry in entries(*others, broken, ranges=True)]
    assert [entry.status for entry in entries(filtered, broken, listing=True)] == [Status.PENDING, Status.COMPILE_ERROR]


def test_fields_may_be_null() -> None:
    [entry] = entries(mutant(status="Timeout", statusReason=None, static=None, coveredBy=None, killedBy=None))
    result = entry.result
    assert (result.status, result.static, result.covered_by, result.killed_by) == (Status.TIMEOUT, None, None, None)


def test_a_mutant_that_the_tool_did_not_finish_has_no_verdict() -> None:
    [entry] = entries(mutant(status="Pending"))
    assert entry.pending
    assert (entry.result.status, entry.result.status_reason) == (
        Status.RUNTIME_ERROR,
        "Stryker.NET did not finish testing it",
    )


@pytest.mark.parametrize(
    ("reason", "excluded"),
    [
        ("Removed by mutate filter", True),
        ("Ignored via code comment.", True),
        ("Removed by excluded mutation filter", True),
        ("Removed by block already covered filter", False),
    ],
)
def test_what_the_user_excluded_is_known_from_the_rest(reason: str, excluded: bool) -> None:
    [entry] = entries(mutant(status="Ignored", statusReason=reason))
    assert entry.excluded is excluded


def test_a_run_that_only_lists_filters_what_is_to_be_tested() -> None:
    [entry] = entries(mutant(status="Ignored", statusReason="Removed by mutate filter"), listing=True)
    assert entry.pending


@pytest.mark.parametrize(
    "fields",
    [{"location": place(99, 1, 2)}, {"location": place(2, 500, 501)}, {"location": None}, {"location": {"start": {}}}],
)
def test_a_place_that_the_file_does_not_have_leaves_a_mutant_out(fields: dict[str, Any]) -> None:
    [remark] = read(mutant(**fields))
    assert str(remark).startswith("src/Zero.cs has a mutant that is left out: ")


def test_files_outside_of_the_copy_are_left_out() -> None:
    elsewhere = {"/home/dev/Shared.cs": {"language": "cs", "source": SOURCE, "mutants": [mutant()]}}
    assert [entry.mutant.path for entry in entries(mutant(), **elsewhere)] == ["src/Zero.cs"]


def test_an_unknown_status_is_no_verdict() -> None:
    [entry] = entries(mutant(status="Exploded"))
    assert entry.result.status is Status.RUNTIME_ERROR
    assert "Exploded" in str(entry.result.status_reason)


@pytest.mark.parametrize("content", [[], {}, {"files": None}, {"files": {"a": 1}}, {"files": {"a": {"mutants": None}}}])
def test_what_is_no_report_is_refused(content: Any) -> None:
    with pytest.raises(ToolError, match="unknown shape"):
        Report.of(content, ROOT)


def test_comments_in_a_configuration_are_skipped_and_strings_are_not(tmp_path: Path) -> None:
    file = tmp_path / "stryker-config.json"
    file.write_text('{ // one\n "stryker-config": { /* two\n */ "mutate": ["**/*.cs", "!//x/*.cs{1..2}"] } }')
    configuration = StrykerNetConfiguration.read(file)
    assert configuration.excluded == ("!//x/*.cs{1..2}",)
    assert configuration.for_copy() is None


def test_a_configuration_for_the_copy_lacks_what_needs_version_control(tmp_path: Path) -> None:
    file = tmp_path / "stryker-config.json"
    file.write_text('{"stryker-config": {"since": {}, "baseline": {"enabled": true}, "verbosity": "info"}}')
    assert json.loads(StrykerNetConfiguration.read(file).for_copy() or "") == {"stryker-config": {"verbosity": "info"}}


@pytest.mark.parametrize(
    ("text", "seconds"), [('{"stryker-config": {"additional-timeout": 1500}}', 1.5), ('{"stryker-config": {}}', 5.0)]
)
def test_the_time_out_is_that_of_the_configuration(tmp_path: Path, text: str, seconds: float) -> None:
    file = tmp_path / "stryker-config.json"
    file.write_text(text)
    assert StrykerNetConfiguration.read(file).extra_s == seconds


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("stryker-config.json", '{"stryker-config": {}}', 'add `"test-runner": "mtp"` to stryker-config.json'),
        ("stryker-config.yml", "stryker-config:\n", "add `test-runner: mtp` to stryker-config.yml"),
    ],
)
def test_the_line_for_the_testing_platform_is_in_the_form_of_the_configuration(
    tmp_path: Path, name: str, text: str, line: str
) -> None:
    (tmp_path / name).write_text(text)
    assert platform_line(StrykerNetConfiguration.read(tmp_path / name)) == line
    assert platform_line(None) == 'write `{"stryker-config": {"test-runner": "mtp"}}` into stryker-config.json'


def test_a_configuration_that_is_not_there_is_one_clear_sentence(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"can't be read: .*: correct it"):
        StrykerNetConfiguration.read(tmp_path / "stryker-config.json")


BUILD = """[08:30:01 ERR] Initial build failed. Command was [dotnet build] Result:   Determining projects to restore...
{copy}/src/Shop/Cart.cs(11,44): error CS1525: Invalid expression term ';' [{copy}/src/Shop/Shop.csproj]

Build FAILED.

{copy}/src/Shop/Cart.cs(11,44): error CS1525: Invalid expression term ';' [{copy}/src/Shop/Shop.csproj]
    1 Error(s)

Stryker.NET failed to mutate your project. For more information see the logs{space}
below:

{copy}/src/Shop/Cart.cs(11,44): error CS1525: Invalid expression term{space}
';' [{copy}/src/Shop/Shop.csproj]
"""
RESTORING = """[08:30:26 ERR] Initial build failed. Result:
{copy}/tests/T.csproj : error NU1102: Unable to find package xunit with version (>= 2.9.9) [{copy}/Shop.slnx]
{copy}/tests/T.csproj : error NU1102:   - Found 1 version(s) in kit [ Nearest version: 2.9.3 ] [{copy}/Shop.slnx]
"""
UNSTABLE = """[08:32:40 WRN] Runner 0: Initial test run encounter an unexpected test case (RandomTests.Timely(at: 6393)), mutation tests may be inaccurate.
[08:32:40 INF] Time Elapsed 00:01:05.4277514
Stryker.NET failed to mutate your project. For more information see the logs{space}
below:


Initial test run could not be completed.

"""
TEST_HOST = """[08:31:33 ERR] TestDiscoverer: Test discovery failed.
Stryker.NET failed to mutate your project. For more information see the logs{space}
below:


Test discovery failed for assembly{space}
'{copy}/tests/Shop.Tests/bin/Debug/net10.0/Shop.Tests.dll'.

Microsoft.VisualStudio.TestPlatform.ObjectModel.TestPlatformException: Could not
find testhost for{space}
Microsoft.VisualStudio.TestPlatform.CrossPlatEngine.Hosting.DotnetTestHostManage
r.GetTestHost

   at Microsoft
"""
RED = """Stryker.NET failed to mutate your project. For more information see the logs{space}
below:


Initial testrun has more than 50% failing tests.

SumsTests.Names

Assert.Null() Failure: Value is not null
"""
CRASHED = """[08:33:12 ERR] An error occurred during the mutation test run
Unhandled exception. System.InvalidOperationException: No process is associated with this object.
   at System.Diagnostics.Process.EnsureState(State state)
"""
OUTPUTS = {
    "a broken build": (
        BUILD,
        "the project doesn't build: src/Shop/Cart.cs(11,44): error CS1525: Invalid expression term ';'",
        "fix what `dotnet build` shows",
    ),
    "packages": (
        RESTORING,
        (
            "the packages of the project can't be restored: tests/T.csproj: error NU1102: Unable to find package xunit "
            "with version (>= 2.9.9) | tests/T.csproj: error NU1102:   - Found 1 version(s) in kit [ Nearest version: "
            "2.9.3 ]"
        ),
        "run `dotnet restore`",
    ),
    "tests with other names each time": (
        UNSTABLE,
        (
            "Stryker.NET can't test: Initial test run could not be completed. | Runner 0: Initial test run encounter an "
            "unexpected test case (RandomTests.Timely(at: 6393)), mutation tests may be inaccurate."
        ),
        "give the tests names that are the same in every run",
    ),
    "folded words": (
        TEST_HOST,
        (
            "Stryker.NET failed (exit code 1): Test discovery failed for assembly "
            "'tests/Shop.Tests/bin/Debug/net10.0/Shop.Tests.dll'. | "
            "Microsoft.VisualStudio.TestPlatform.ObjectModel.TestPlatformException: Could not find testhost for "
            "Microsoft.VisualStudio.TestPlatform.CrossPlatEngine.Hosting.DotnetTestHostManager.GetTestHost"
        ),
        "run `dotnet stryker` by hand to see all that it prints",
    ),
    "failing tests": (RED, "the tests fail without any mutant", "make `dotnet test` pass"),
    "a crash": (
        CRASHED,
        (
            "Stryker.NET has crashed: System.InvalidOperationException: No process is associated with this object. | "
            "An error occurred during the mutation test run"
        ),
        "run `dotnet stryker` by hand to see all that it prints",
    ),
    "no output": ("", "Stryker.NET failed (exit code 1): it printed nothing", None),
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_output_of_the_real_tool_becomes_a_problem_and_a_remedy(name: str) -> None:
    printed, problem, remedy = OUTPUTS[name]
    error = failure(printed.replace("{copy}", str(ROOT)).replace("{space}", " "), 1, ROOT)
    assert error.problem == problem
    assert remedy is None or error.remedy == remedy
