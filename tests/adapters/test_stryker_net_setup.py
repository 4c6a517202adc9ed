"""Setup: where the adapter is at home, how the tool is called, and what doctor says. Against the scripted dotnet."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from msp_bridge.adapters.stryker_net import StrykerNet
from msp_bridge.adapters.stryker_net.plan import StrykerNetPlan
from support.adapters import discovered, refusal
from support.files import written
from support.net_trees import SDK, Scripted, adapter_on, results_of, statuses
from support.projects import copied

from msp_bridge.adapter import ConfigurationError, Finding, Project, ToolError

pytestmark = pytest.mark.usefixtures("dotnet")
CONFIG = '{"stryker-config": {}}'
TEST_PROJECT = '<Project><PackageReference Include="Microsoft.NET.Test.Sdk" /></Project>'


def is_at_home(root: Path, *, nested: bool = False, config_file: Path | None = None) -> bool:
    project = Project(root=root, cache=root / "no cache", nested=nested, config_file=config_file)
    return StrykerNet.detect(project) is not None


def use_the_global_tool(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(SDK / "tools"), prepend=":")


@pytest.mark.parametrize("name", ["stryker-config.json", "stryker-config.yml", "stryker-config.yaml"])
@pytest.mark.parametrize("nested", [False, True])
def test_a_configuration_is_a_home(tmp_path: Path, name: str, nested: bool) -> None:
    text = CONFIG if name.endswith("json") else "stryker-config:\n  verbosity: info\n"
    assert is_at_home(written(tmp_path / "p", {name: text}), nested=nested)


def test_a_manifest_beside_a_solution_is_a_home(tmp_path: Path) -> None:
    assert is_at_home(copied_without_config(tmp_path))
    assert is_at_home(tmp_path / "project", nested=True)


def test_a_manifest_above_counts_for_what_was_opened_only(tmp_path: Path) -> None:
    root = written(copied_without_config(tmp_path) / "sub", {"Sub.sln": ""})
    assert is_at_home(root)
    assert not is_at_home(root, nested=True)


def test_project_folders_of_a_solution_are_no_homes_of_their_own(tmp_path: Path) -> None:
    root = copied("net_calc", tmp_path)
    for folder in ("src/Calc", "tests/Calc.Tests"):
        assert not is_at_home(root / folder, nested=True)


def test_the_global_tool_counts_for_tests_that_were_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = copied_without_config(tmp_path)
    shutil.rmtree(root / ".config")
    assert not is_at_home(root)
    use_the_global_tool(monkeypatch)
    assert is_at_home(root)
    assert not is_at_home(root, nested=True)
    (root / "tests/Calc.Tests/Calc.Tests.csproj").write_text("<Project />")
    assert not is_at_home(root)


def test_a_folder_without_anything_of_dotnet_is_no_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_the_global_tool(monkeypatch)
    assert not is_at_home(written(tmp_path / "p", {"package.json": "{}"}))
    assert not is_at_home(written(tmp_path / "q", {"Q.csproj": "<Project />"}))


def test_only_its_own_configuration_files_are_taken(tmp_path: Path) -> None:
    files = {
        "ours.json": CONFIG,
        "js.json": '{"mutate": []}',
        "bad.json": "{",
        "a.toml": "",
        "a.yml": "stryker-config:\n",
    }
    root = written(copied_without_config(tmp_path), files)
    assert [name for name in files if is_at_home(root, config_file=root / name)] == ["ours.json", "a.yml"]


def test_a_configuration_that_was_named_is_not_for_the_folders_below(tmp_path: Path) -> None:
    root = written(copied_without_config(tmp_path), {"ours.json": CONFIG})
    assert not is_at_home(root / "src/Calc", nested=True, config_file=root / "ours.json")


async def test_a_configuration_in_the_test_project_runs_there(
    dotnet: Scripted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = copied("net_repo", tmp_path)
    use_the_global_tool(monkeypatch)
    async with adapter_on(root) as adapter:
        results = await results_of(adapter, await discovered(adapter))
    assert statuses(results) == {"price - shipping": "Killed"}
    assert {Path(run["directory"]).name for run in dotnet.runs} == {"Shop.Tests"}
    assert not is_at_home(root / "test/Shop.Tests", nested=True)  # what it tests lies outside


async def test_a_test_project_that_was_opened_alone_says_what_to_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_the_global_tool(monkeypatch)
    root = copied("net_repo", tmp_path) / "test/Shop.Tests"
    await refusal(adapter_on(root), ConfigurationError, "open the directory that holds both")


async def test_the_configuration_that_was_named_is_used(dotnet: Scripted, tmp_path: Path) -> None:
    root = copied_without_config(tmp_path)
    file = written(root, {"ci/ours.json": '{"stryker-config": {"mutate": ["**/Names.cs"]}}'}) / "ci/ours.json"
    async with adapter_on(root, config_file=file) as adapter:
        assert {mutant.path for mutant in await discovered(adapter)} == {"src/Calc/Names.cs"}
    arguments = dotnet.runs[0]["arguments"]
    assert arguments[arguments.index("-f") + 1] == str(file)


async def test_the_command_can_be_set(tmp_path: Path) -> None:
    root = copied("net_calc", tmp_path)
    command = f"{SDK / 'dotnet'} stryker"
    async with adapter_on(root, settings={"command": command}) as adapter:
        assert await discovered(adapter)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("stryker-config.json", '{"stryker-config": []}', "is no configuration of Stryker.NET"),
        ("stryker-config.yml", "stryker-config:\n  since: true\n", "write it as stryker-config.json"),
    ],
)
async def test_a_wrong_configuration_is_one_clear_sentence(tmp_path: Path, name: str, text: str, said: str) -> None:
    root = written(copied_without_config(tmp_path), {name: text})
    await refusal(adapter_on(root), ConfigurationError, said)


async def test_scopes_without_sources_start_nothing(dotnet: Scripted, tmp_path: Path) -> None:
    root = copied("net_calc", tmp_path)
    async with adapter_on(root) as adapter:
        assert await discovered(adapter, "README.md", "gone.cs", "gone/", "src/Calc/Calc.csproj") == []
        assert await results_of(adapter, []) == []
    assert dotnet.runs == []


@pytest.mark.parametrize(
    ("path", "claimed"),
    [
        ("A.cs", True),
        ("src/A.cs", True),
        ("src/bin/A.cs", False),
        ("obj/A.cs", False),
        ("A.fs", False),
        ("A.csproj", False),
    ],
)
def test_sources_are_claimed(tmp_path: Path, path: str, claimed: bool) -> None:
    assert StrykerNet(Project(root=tmp_path, cache=tmp_path)).claims(path) is claimed


async def findings(root: Path) -> list[Finding]:
    return [finding async for finding in StrykerNet(Project(root=root, cache=root.parent / "no" / "cache")).diagnose()]


async def test_doctor_finds_what_is_there(tmp_path: Path) -> None:
    found = await findings(copied("net_calc", tmp_path))
    assert [(finding.good, finding.subject) for finding in found] == [
        (True, "stryker-net"),
        (True, "configuration"),
        (True, ".NET SDK"),
        (True, "tests"),
    ]
    assert "`dotnet stryker`" in found[0].text
    assert found[2].text == "9.0.100-scripted"


async def test_doctor_and_an_error_say_how_to_install_the_tool(tmp_path: Path) -> None:
    root = copied("net_repo", tmp_path)
    [finding] = await findings(root)
    error = await refusal(adapter_on(root), ToolError)
    assert (finding.good, finding.remedy) == (False, "dotnet tool install -g dotnet-stryker") == (False, error.remedy)


async def test_doctor_says_that_there_is_no_sdk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    [finding] = await findings(copied("net_calc", tmp_path))
    assert finding.remedy == "install the .NET SDK"
    with pytest.raises(ToolError):
        async with adapter_on(tmp_path / "project") as adapter:
            await discovered(adapter)


@pytest.mark.parametrize("engine", ["auto", "tool"])
async def test_doctor_says_what_runs_the_tests(tmp_path: Path, engine: str) -> None:
    root = copied("net_calc", tmp_path)
    project = Project(root=root, cache=tmp_path / "cache", settings={"engine": engine})
    found = [finding async for finding in StrykerNet(project).diagnose()]
    assert ("test hosts of VSTest" if engine == "auto" else "as `engine` says") in found[-1].text


async def test_a_wrong_engine_is_a_clear_error(tmp_path: Path) -> None:
    error = await refusal(adapter_on(copied("net_calc", tmp_path), settings={"engine": "fast"}), ConfigurationError)
    assert (error.problem, error.remedy) == (
        "`engine` of stryker-net is 'fast'",
        'set it to "auto" or "tool"',
    )


@pytest.mark.parametrize(
    ("config", "command", "platform"),
    [
        ('{"stryker-config": {"test-runner": "mtp"}}', "", True),
        ('{"stryker-config": {"test-runner": "vstest"}}', "", False),
        ('{"stryker-config": {}}', " --test-runner mtp", True),
    ],
)
def test_the_testing_platform_is_a_choice_of_the_user(
    tmp_path: Path, config: str, command: str, platform: bool
) -> None:
    root = written(copied_without_config(tmp_path), {"stryker-config.json": config})
    settings = {"command": f"dotnet stryker{command}"}
    plan = StrykerNetPlan.make(Project(root=root, cache=tmp_path / "cache", settings=settings))
    assert [plan.uses_platform(base) for base in plan.bases] == [platform]


def test_doctor_says_what_is_missing(tmp_path: Path) -> None:
    root = copied_without_config(tmp_path)
    shutil.rmtree(root / ".config")
    assert StrykerNet.absent(Project(root=root, cache=root)).remedy == "dotnet tool install -g dotnet-stryker"
    assert StrykerNet.absent(Project(root=tmp_path, cache=root)).remedy == "dotnet stryker init"


def copied_without_config(to: Path) -> Path:
    root = copied("net_calc", to)
    (root / "stryker-config.json").unlink()
    return root


@pytest.mark.parametrize(
    "config",
    ['{"stryker-config": {"solution": "../../All.sln"}}', '{"stryker-config": {"test-projects": ["../A/A.csproj"]}}'],
)
def test_a_configuration_that_leads_outside_is_no_home_of_its_own(tmp_path: Path, config: str) -> None:
    root = written(
        tmp_path / "p", {"test/T/stryker-config.json": config, "test/T/T.csproj": TEST_PROJECT, "All.sln": ""}
    )
    assert not is_at_home(root / "test/T", nested=True)
    assert is_at_home(root)


@pytest.mark.parametrize(
    ("configuration", "expected"),
    [({"thresholds": {"high": 80, "break": 72}}, 72), ({"thresholds": {"high": 80}}, None), ({}, None)],
)
def test_the_threshold_is_that_of_the_configuration(
    tmp_path: Path, configuration: dict[str, Any], expected: float | None
) -> None:
    (tmp_path / "stryker-config.json").write_text(json.dumps({"stryker-config": configuration}))
    assert StrykerNet(Project(root=tmp_path, cache=tmp_path / "cache")).threshold() == expected
