"""What is found in a project: its configuration, packages, package manager and Node; and what `doctor` says of it."""

import json
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from msp_bridge.adapters.stryker_js import StrykerJs
from msp_bridge.adapters.stryker_js.configuration import CORE
from msp_bridge.adapters.stryker_js.failures import faster_runner
from msp_bridge.adapters.stryker_js.sandbox import ProjectSandbox
from support.adapters import discovered, findings_of, project_at, refusal, remarks, results_of
from support.environments import program
from support.files import written
from support.stryker_js_trees import BOTH, CORE8, CORE9, adapter_on, copied, scripted, scripted_core

from msp_bridge.adapter import ConfigurationError, Status, ToolError

NAMES = [
    f"{dot}stryker{kind}.{extension}"
    for dot in ("", ".")
    for kind in (".conf", ".config")
    for extension in ("js", "mjs", "cjs", "json")
]


@pytest.mark.parametrize("name", NAMES)
def test_every_name_of_a_configuration_file_is_known(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("{}")
    assert StrykerJs.detect(project_at(tmp_path)) is not None


@pytest.mark.parametrize("table", ["dependencies", "devDependencies"])
def test_a_dependency_on_the_core_is_enough(table: str, tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text(json.dumps({table: {"@stryker-mutator/core": "^9"}}))
    assert StrykerJs.detect(project_at(tmp_path)) is not None


async def test_a_dependency_on_the_core_in_a_broken_file_is_no_reason_for_silence(tmp_path: Path) -> None:
    root = written(tmp_path / "project", {"package.json": '{"devDependencies": {"@stryker-mutator/core": }}'})
    async with adapter_on(root) as adapter:
        (finding,) = await findings_of(adapter)
    assert not finding.good
    assert finding.text.startswith(f"{root}/package.json is not valid JSON (")
    assert finding.text.endswith(": line 1 column 47 (char 46))")
    assert finding.remedy == "correct it"


@pytest.mark.parametrize("text", ["{}", '{"devDependencies": {"mocha": "1"}}', '{"devDependencies": []}', "[", "[]"])
def test_other_packages_are_not_taken(text: str, tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text(text)
    assert StrykerJs.detect(project_at(tmp_path)) is None


def test_what_is_installed_around_a_nested_project_does_not_count(tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text('{"devDependencies": {"@stryker-mutator/core": "^9"}}')
    inner = written(tmp_path / "inner", {"package.json": "{}"})
    assert StrykerJs.detect(project_at(inner, nested=True)) is None


@pytest.mark.parametrize(
    ("name", "text", "taken"),
    [
        ("any.json", '{"mutate": []}', True),
        ("any.mjs", "", True),
        ("any.js", "", True),
        ("stryker-config.json", '{"stryker-config": {}}', False),
        ("stryker-config.yaml", "", False),
        ("pyproject.toml", "", False),
        ("package.json", "{}", False),
    ],
)
def test_a_named_configuration_file_is_taken_if_it_may_be_strykers(
    name: str, text: str, taken: bool, tmp_path: Path
) -> None:
    (tmp_path / "stryker.conf.json").write_text("{}")
    (tmp_path / name).write_text(text)
    assert (StrykerJs.detect(project_at(tmp_path, config_file=tmp_path / name)) is not None) == taken


def test_stryker_net_configures_itself(tmp_path: Path) -> None:
    (tmp_path / "stryker.config.json").write_text('{"stryker-config": {}}')
    assert StrykerJs.detect(project_at(tmp_path)) is None


@pytest.mark.parametrize(
    "path", ["a.js", "src/a.jsx", "a.mjs", "a.cjs", "a.ts", "a.tsx", "a.mts", "a.cts", "a.vue", "a.svelte", "a.html"]
)
def test_what_may_be_mutated_is_claimed(path: str, tmp_path: Path) -> None:
    adapter = StrykerJs(project_at(tmp_path))
    assert adapter.claims(f"lib/{path}")
    assert adapter.claims(path) == path.startswith("src/")  # by default, StrykerJS mutates no others
    (tmp_path / "stryker.config.json").write_text("{}")
    assert adapter.claims(path)


@pytest.mark.parametrize("path", ["a.py", "a.json", "js", "node_modules/a/a.js", "packages/a/node_modules/b/b.ts"])
def test_nothing_else_is_claimed(path: str, tmp_path: Path) -> None:
    assert not StrykerJs(project_at(tmp_path)).claims(path)


async def test_the_named_configuration_file_is_the_one_that_counts(tmp_path: Path) -> None:
    root = copied("js_mocha", tmp_path)
    options = {"mutate": ["lib/price.js"], "plugins": [], "thresholds": {"high": 80, "break": 72.5}}
    quiet = {"xyzzy": 1, "warnings": {"unknownOptions": False}}
    (root / "other.json").write_text(json.dumps({**options, **quiet}))
    async with adapter_on(root, config_file=root / "other.json") as adapter:
        assert {mutant.path for mutant in await discovered(adapter)} == {"lib/price.js"}
        assert adapter.threshold() == 72.5
        assert await remarks(adapter) == [], "it wants no warnings of options that nothing knows"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"warm": "long"}, "`warm` of 'stryker-js' must be a number of seconds, not 'long'"),
        ({"warm": -1}, "must be a number of seconds, not -1"),
        ({"node": 22}, "must be the path of a program, not 22"),
        ({"node": "no/such/node"}, "there is no program .*no/such/node: correct the setting `node`"),
    ],
)
async def test_wrong_settings_are_refused(settings: dict[str, Any], message: str, tmp_path: Path) -> None:
    root = copied("js_mocha", tmp_path)
    await refusal(adapter_on(root, settings=settings), ConfigurationError, message)


async def test_a_node_that_is_too_old_is_named_with_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = copied("js_mocha", tmp_path, None)
    core = scripted_core(root / "node_modules", "", "10.0.0")
    (core / "package.json").write_text('{"version": "10.0.0", "engines": {"node": ">=22.0.0"}}')
    node = program(tmp_path / "bin" / "node", "echo v20.1.0")
    monkeypatch.setenv("PATH", f"{node.parent}:/bin:/usr/bin")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("NVM_DIR", str(tmp_path / "nvm"))
    async with adapter_on(root) as adapter:
        message = (
            r"StrykerJS 10\.0\.0 needs Node >=22\.0\.0, but .*bin/node is v20\.1\.0: install one \(`nvm install 22`\)"
        )
        with pytest.raises(ToolError, match=message):
            await discovered(adapter)
        program(tmp_path / "nvm/versions/node/v22.3.0/bin/node", "echo v22.3.0")
        with pytest.raises(ToolError, match="StrykerJS ended unexpectedly"):  # that one was taken
            await discovered(adapter)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (".nvmrc", "v21.7\n"),
        (".node-version", "21.7.3"),
        (".tool-versions", "python 3.11.0\nnodejs 21.7.3\n"),
        ("package.json", '{"volta": {"node": "21.7.3"}}'),
    ],
)
async def test_the_node_that_a_project_pins_comes_first(
    name: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = scripted(tmp_path, "")
    (root / name).write_text(text)
    monkeypatch.setenv("VOLTA_HOME", str(tmp_path / "volta"))
    for version in ("21.6.1", "21.7.3", "23.0.0"):
        program(tmp_path / "volta/tools/image/node" / version / "bin/node", f"echo v{version}")
    async with adapter_on(root) as adapter:
        (_, node, *_) = await findings_of(adapter)
    assert node.text == f"v21.7.3 ({tmp_path}/volta/tools/image/node/21.7.3/bin/node)"


def test_what_is_absent_comes_with_the_commands_that_set_it_up(tmp_path: Path) -> None:
    (tmp_path / "yarn.lock").write_text("")
    finding = StrykerJs.absent(project_at(tmp_path))
    assert not finding.good
    assert finding.remedy == "yarn add -D @stryker-mutator/core && yarn stryker init"


@pytest.mark.parametrize(
    ("files", "command"),
    [
        ({"pnpm-lock.yaml": ""}, "pnpm add -D"),
        ({"pnpm-lock.yaml": "", "pnpm-workspace.yaml": "packages: []"}, "pnpm add -D -w"),
        ({"yarn.lock": "# yarn lockfile v1\n", "package.json": '{"workspaces": ["a"]}'}, "yarn add -D -W"),
        ({"yarn.lock": "__metadata:\n", "package.json": '{"workspaces": ["a"]}'}, "yarn add -D"),
        ({"package-lock.json": "", "package.json": '{"workspaces": ["packages/*"]}'}, "npm install --save-dev"),
    ],
)
def test_the_root_of_a_workspace_is_named_where_the_package_manager_wants_that(
    tmp_path: Path, files: dict[str, str], command: str
) -> None:
    written(tmp_path, files)
    remedy = StrykerJs.absent(project_at(tmp_path)).remedy
    assert remedy is not None
    assert remedy.startswith(f"{command} @stryker-mutator/core && ")


async def test_the_doctor_shows_what_was_found(tmp_path: Path) -> None:
    root = copied("js_mocha", tmp_path)
    async with adapter_on(root) as adapter:
        findings = await findings_of(adapter)
    assert [(finding.subject, finding.good) for finding in findings] == [
        ("stryker-js", True),
        ("node", True),
        ("packages", True),
        ("configuration", True),
        ("isolation", True),
        ("mutants", True),
    ]
    texts = {finding.subject: finding.text for finding in findings}
    assert texts["stryker-js"].startswith(f"9.6.1 in {CORE9.resolve()}")
    assert texts["packages"] == "installed with npm (`npm install --save-dev <package>`)"
    assert texts["configuration"] == str(root / "stryker.config.json")
    assert texts["mutants"] == "25 mutants in 2 files, 1 of them ignored"


async def test_the_doctor_knows_a_faster_way_than_npm_test_for_each_mutant(tmp_path: Path) -> None:
    root = copied("js_mocha", tmp_path)
    (root / "stryker.config.json").unlink()
    place = "in StrykerJS's configuration"
    install = "npm install --save-dev @stryker-mutator/vitest-runner@9.6.1"
    plugin = f'write "plugins": ["@stryker-mutator/vitest-runner"] {place}'
    for asked, remedy in (
        ((), None),
        (("jest", "vitest"), f'{install}, and {plugin}; and write "testRunner": "vitest" {place}: it is faster'),
        (("@stryker-mutator/mocha-runner", "vitest"), f'write "testRunner": "mocha" {place}, which is faster'),
    ):
        packages = dict.fromkeys((CORE, *asked), "*")
        (root / "package.json").write_text(json.dumps({"scripts": {"test": "vitest run"}, "devDependencies": packages}))
        assert faster_runner(root) == remedy
    async with adapter_on(root) as adapter:
        (runner,) = [finding for finding in await findings_of(adapter) if finding.subject == "test runner"]
    text = "a command (`npm test` by default) runs all tests, in new processes for each mutant"
    assert (runner.good, runner.text, runner.remedy) == (True, text, remedy)


@pytest.mark.parametrize("text", ['{"a": ' * 100_000, "[" * 100_000])
async def test_a_package_json_that_is_nested_too_deeply_is_named(text: str, tmp_path: Path) -> None:
    root = copied("js_mocha", tmp_path, None)
    (root / "package.json").write_text(text)
    async with adapter_on(root) as adapter:
        (finding,) = await findings_of(adapter)
    assert finding.text == f"{root}/package.json is not valid JSON (it is nested too deeply)"


async def test_the_doctor_shows_what_is_wrong_and_how_to_fix_it(tmp_path: Path) -> None:
    root = copied("js_mocha", tmp_path, None)
    async with adapter_on(root) as adapter:
        (missing,) = await findings_of(adapter)
        (root / "node_modules").symlink_to(CORE9)
        (root / "stryker.config.json").write_text('{"mutate": ["nothing/*.js"]}')
        *_, empty = await findings_of(adapter)
        (root / "node_modules").unlink()
    assert (missing.good, missing.remedy) == (False, "npm install")
    assert (empty.good, empty.remedy) == (False, "set `mutate` in StrykerJS's configuration to the files to mutate")


def hoisted(to: Path) -> Path:
    """A package in a workspace, whose base configuration lies above it; its root."""
    root = copied("js_mocha", to / "packages", None)
    (to / "package.json").write_text('{"private": true, "workspaces": ["packages/*"]}')
    (to / "yarn.lock").write_text("theirs\n")
    (to / "manifest.json").write_text("theirs\n")
    (to / "base.json").write_text('{"spec": "test/**/*.spec.js"}')
    (root / ".mocharc.json").write_text('{"extends": "../../base.json"}')
    return root


async def test_packages_may_be_above_and_what_is_written_beside_them_stays_beside_the_copy(
    isolated: bool, tmp_path: Path
) -> None:
    workspace = tmp_path / "repository"
    root = hoisted(workspace)
    before = {path.name: path.read_text() for path in workspace.iterdir() if path.is_file()}
    (workspace / ".nx").mkdir()
    (workspace / "node_modules" / ".vue-global-types").mkdir(parents=True)
    for package in CORE9.iterdir():
        (workspace / "node_modules" / package.name).symlink_to(package)
    writes = "import { mkdirSync, writeFileSync } from 'node:fs';\n"
    for name in (".nx", "node_modules/.vue-global-types"):
        place = f"../../../../{name}"  # the sandbox is in .stryker-tmp of the copy, that in packages
        writes += f"mkdirSync('{place}', {{ recursive: true }}); writeFileSync('{place}/written', '');\n"
    spec = next((root / "test").rglob("*.spec.js"))
    spec.write_text(writes + spec.read_text())
    async with adapter_on(root, cache=tmp_path / "cache", nested=True) as adapter:
        mutants = [mutant for mutant in await discovered(adapter) if mutant.path == "lib/price.js"]
        (result,) = await results_of(adapter, [mutant for mutant in mutants if mutant.replacement == "sum + discount"])
    assert result.status is Status.KILLED
    assert {path.name: path.read_text() for path in workspace.iterdir() if path.is_file()} == before
    assert list(workspace.rglob("written")) == []
    assert isolated or list((tmp_path / "cache").rglob("written")) != []


def test_sandboxes_of_one_project_are_linked_side_by_side(tmp_path: Path) -> None:
    workspace = tmp_path / "repository"
    root = workspace / "packages" / "group" / "part"
    root.mkdir(parents=True)
    (workspace / "package.json").write_text("{}")
    (workspace / "node_modules").mkdir()
    for number in range(100):
        (workspace / f"{number}.json").write_text("{}")
        (workspace / "node_modules" / f"package{number}").mkdir()
    copies = [ProjectSandbox.claim(project_at(root, cache=tmp_path / "cache")) for _ in range(4)]
    with ThreadPoolExecutor(len(copies)) as threads:
        list(threads.map(ProjectSandbox.refresh, copies))
    for copy in copies:
        assert len(list((copy.path.parents[2] / "node_modules").iterdir())) == 100
        copy.close()


async def test_a_node_that_does_not_work_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = scripted(tmp_path, "")
    shim = program(tmp_path / "shims" / "node", "echo 'No version is set for command node' >&2\nexit 126")
    monkeypatch.setenv("PATH", f"{shim.parent}:/bin:/usr/bin")
    monkeypatch.setenv("ASDF_DATA_DIR", str(tmp_path / "asdf"))
    program(tmp_path / "asdf/installs/nodejs/22.3.0/bin/node", "echo v22.3.0")
    async with adapter_on(root) as adapter:
        (_, node, *_) = await findings_of(adapter)
    assert node.text == f"v22.3.0 ({tmp_path}/asdf/installs/nodejs/22.3.0/bin/node)"


@pytest.mark.parametrize(
    ("modules", "name", "text", "expected"),
    [
        (CORE9, "stryker.config.mjs", "export default {testRunner: 'mocha', thresholds: {high: 80, break: 60}};", 60),
        (CORE9, "stryker.config.js", "export default {testRunner: 'mocha', thresholds: {break: null}};", None),
        (CORE8, ".stryker.conf.cjs", "module.exports = {testRunner: 'mocha', thresholds: {break: 0}};", 0),
        (CORE8, "stryker.conf.json", "{}", None),
    ],
)
async def test_the_threshold_is_that_of_the_configuration(
    tmp_path: Path, modules: Path, name: str, text: str, expected: float | None
) -> None:
    root = copied("js_mocha", tmp_path, modules)
    (root / "stryker.config.json").unlink()
    (root / name).write_text(text)
    async with adapter_on(root) as adapter:
        assert await discovered(adapter, "lib/price.js")
        assert adapter.threshold() == expected


@BOTH
async def test_an_option_that_nothing_knows_is_named_in_each_request_with_what_was_meant(
    tmp_path: Path, modules: Path
) -> None:
    root = copied("js_mocha", tmp_path, modules)
    options = {"testRunner": "mocha", "timeoutMs": 500, "xyzzy": 1, "x_comment": "why", "mochaOptions": {}}
    (root / "stryker.config.json").write_text(json.dumps(options))
    async with adapter_on(root) as adapter:
        told = [await remarks(adapter, path) for path in ("lib/price.js", "lib/unicode.js")]
        findings = [finding for finding in await findings_of(adapter) if not finding.good]
    named = "neither StrykerJS nor a plugin of its configuration has an option"
    meant = "did you mean 'timeoutMS'?"
    other = "remove it, or name the plugin that takes it in `plugins`"
    assert told == [[f"{named} 'timeoutMs': {meant}", f"{named} 'xyzzy': {other}"]] * 2
    assert [(finding.text, finding.remedy) for finding in findings] == [
        (f"{named} 'timeoutMs'", meant),
        (f"{named} 'xyzzy'", other),
    ]


def test_a_disk_that_is_full_when_the_maps_of_plug_n_play_are_written_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = copied("js_mocha", tmp_path, None)
    (root / ".pnp.cjs").write_text("")
    sandbox = ProjectSandbox.claim(project_at(root))

    def full(dir: Path, **_: str) -> tuple[int, str]:
        raise OSError(28, "No space left on device", str(dir))

    monkeypatch.setattr(tempfile, "mkstemp", full)
    with pytest.raises(ToolError, match=r"no space left for a private copy in .*: free some space"):
        sandbox.refresh()
    sandbox.close()
