"""Whatever is wrong with the tool, the project or its tests ends in one clear sentence, and nothing hangs."""

import asyncio
import contextlib
import json
import os
import threading
from pathlib import Path

import pytest
from msp_bridge.adapters.stryker_js.failures import BaselineFailure, failure
from msp_bridge.adapters.stryker_js.sandbox import ProjectSandbox
from msp_bridge.adapters.stryker_js.sessions import StrykerJsSession
from support.adapters import discovered, findings_of, refusal, results_of, unusable
from support.stryker_js_trees import (
    BOTH,
    CORE8,
    CORE9,
    KILLS,
    SERVER,
    adapter_on,
    configure,
    copied,
    scripted,
    scripted_core,
)

from msp_bridge.adapter import BaselineError, ConfigurationError, Status, ToolError
from msp_bridge.testing import RunningProcesses


@pytest.mark.usefixtures("portable")
@BOTH
async def test_a_suite_that_is_red_broken_or_empty_is_shown_and_run_again_when_something_has_changed(
    modules: Path,
    every_case: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    root = copied("js_mocha", tmp_path, modules)
    red, specs = root / "test/red.spec.js", root / "test/price.spec.js"
    red.write_text("it('is red', () => { throw new Error('for a reason'); });\n")
    async with adapter_on(root) as adapter:
        mutants = await discovered(adapter)
        with pytest.raises(BaselineError) as caught:
            await results_of(adapter, mutants[:2])
        assert str(caught.value) == "the tests fail without any mutant (is red: for a reason): fix the tests first"
        assert (caught.value.failing, caught.value.first_failure) == (("is red",), "for a reason")
        if modules is CORE8:  # the rest is the session's, which both have
            return
        with monkeypatch.context() as patched:  # nothing has changed: the tests are not run again
            patched.setattr(StrykerJsSession, "process", None)
            with pytest.raises(BaselineError, match="is red: for a reason") as again:
                await results_of(adapter, mutants[:1])
            assert again.value.failing == ("is red",)
        red.write_text("import './nowhere.js';\n")
        with pytest.raises(ToolError, match=r"(?s)^the tests can't be run without any mutant .*nowhere\.js"):
            await results_of(adapter, mutants[:1])
        red.write_text("")
        assert len(await results_of(adapter, mutants[:1])) == 1
        if not every_case:
            return
        specs.write_text("it('imports nothing', () => {});\n")
        (uncovered,) = await results_of(adapter, mutants[:1])
        assert uncovered.status is Status.NO_COVERAGE
        assert "where the tests run what is built from it, set `buildCommand`" in caplog.text
        specs.write_text("")
        with pytest.raises(ToolError, match="StrykerJS ran no tests: correct the options of the test runner"):
            await results_of(adapter, mutants[:1])


@pytest.mark.usefixtures("portable")
async def test_a_bad_configuration_is_named(tmp_path: Path) -> None:
    root = copied("js_mocha", tmp_path)
    file = root / "stryker.config.json"
    bad = {
        "{": f'Invalid config file "{file}"',
        '{"concurrency": 1, "mutate": 3}': 'Config option "mutate" has the wrong type',
    }
    async with adapter_on(root) as adapter:
        for text, message in bad.items():
            file.write_text(text)
            with pytest.raises(ConfigurationError) as caught:
                await discovered(adapter)
            assert message in str(caught.value)
        file.write_text('{"testRunner": "mocha"}')
        assert await discovered(adapter)


GIVES_NOTHING = {
    "export const options = {};": "it must have an object as its default export",
    "throw new Error('for a reason');": "for a reason",
    "export default () => ({});": "it must have an object as its default export",
    "export default {": "Unexpected end of input",
    "import './nowhere.mjs';": "nowhere.mjs",
}


@pytest.mark.usefixtures("portable")
async def test_a_configuration_in_javascript_that_gives_nothing_is_named(every_case: bool, tmp_path: Path) -> None:
    root = copied("js_vitest", tmp_path)
    async with adapter_on(root) as adapter:
        for text, message in list(GIVES_NOTHING.items())[: None if every_case else 1]:
            (root / "stryker.conf.mjs").write_text(text)
            with pytest.raises(ConfigurationError) as caught:
                await discovered(adapter)
            assert str(caught.value).startswith(f'Invalid config file "{root}/stryker.conf.mjs": ')
            assert message in str(caught.value)


@pytest.mark.parametrize(
    ("lock", "command"),
    [("package-lock.json", "npm install --save-dev"), ("pnpm-lock.yaml", "pnpm add -D"), ("yarn.lock", "yarn add -D")],
)
async def test_a_missing_core_is_named_with_the_command_to_install_it(lock: str, command: str, tmp_path: Path) -> None:
    root = copied("js_mocha", tmp_path, None)
    (root / "package.json").write_text("{}")
    (root / lock).write_text("")
    await refusal(adapter_on(root), ToolError, f"StrykerJS is not installed for .*: {command} @stryker-mutator/core")


@pytest.mark.parametrize("manager", ["npm", "pnpm", "yarn", "bun"])
async def test_a_fresh_clone_installs_what_it_asks_for_already(manager: str, tmp_path: Path) -> None:
    root = copied("js_mocha", tmp_path, None)
    description = json.loads((root / "package.json").read_text())
    (root / "package.json").write_text(json.dumps({**description, "packageManager": f"{manager}@9.9.9"}))
    error = await refusal(adapter_on(root), ToolError)
    assert str(error) == f"StrykerJS is not installed for {root}: {manager} install"


async def test_a_package_that_is_asked_for_above_is_installed_there(tmp_path: Path) -> None:
    root = copied("js_mocha", tmp_path / "packages", None)
    (root / "package.json").rename(tmp_path / "package.json")
    (root / "package.json").write_text("{}")
    (tmp_path / "pnpm-lock.yaml").write_text("")
    error = await refusal(adapter_on(root), ToolError)
    assert str(error) == f"StrykerJS is not installed for {tmp_path}: pnpm install"


async def test_a_broken_package_json_is_named_with_the_place(tmp_path: Path) -> None:
    root = scripted(tmp_path, SERVER)
    before = (root / "package.json").read_text()
    async with adapter_on(root) as adapter:
        mutants = await discovered(adapter)
        (root / "package.json").write_text("{ name\n}")
        with pytest.raises(ConfigurationError) as caught:
            await discovered(adapter)
        why = "Expecting property name enclosed in double quotes: line 1 column 3 (char 2)"
        assert caught.value.problem == f"{root}/package.json is not valid JSON ({why})"
        (finding,) = await findings_of(adapter)
        assert (finding.good, finding.text, finding.remedy) == (False, caught.value.problem, "correct it")
        (root / "package.json").write_text(before)
        assert await discovered(adapter) == mutants


async def test_a_core_that_is_too_old_is_named(tmp_path: Path) -> None:
    root = scripted(tmp_path, "", "5.6.1")
    await refusal(adapter_on(root), ToolError, r"StrykerJS 5\.6\.1 in .* is too old \(6\.4 or later is needed\)")


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("", r"StrykerJS ended unexpectedly \(exit code 0\)"),
        ("process.stderr.write('no way\\n'); process.exit(3)", r"StrykerJS ended unexpectedly \(exit code 3: no way\)"),
        (
            "process.stdout.write('Content-Length: 99999999\\r\\n\\r\\n{')",
            r"sent what can't be read \(a message of 99999999 bytes",
        ),
        ("process.stdout.write('Content-Length: 50\\r\\n\\r\\n{')", r"StrykerJS ended unexpectedly"),
    ],
    ids=["says nothing", "ends at once", "announces too much", "ends within a message"],
)
async def test_a_server_that_ends_or_talks_nonsense_is_named(script: str, message: str, tmp_path: Path) -> None:
    root = scripted(tmp_path, script)
    await refusal(adapter_on(root), ToolError, message)


@pytest.mark.usefixtures("portable")
@pytest.mark.parametrize(
    "script",
    ["setTimeout(() => {}, 1e6)", "(function flood() { process.stdout.write('x'.repeat(65536), flood) })()"],
    ids=["silent", "flooding"],
)
async def test_a_server_that_never_answers_is_ended(
    script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("msp_bridge.adapters.stryker_js.processes.HANDSHAKE_TIMEOUT_S", 2.0)
    root = scripted(tmp_path, script)
    await refusal(adapter_on(root), ToolError, r"StrykerJS didn't answer within 2 s of its start: run")


@pytest.mark.usefixtures("portable")
async def test_a_server_that_crashes_is_an_error_and_the_next_request_gets_another(tmp_path: Path) -> None:
    root = copied("js_mocha", tmp_path, None)
    core = scripted_core(root / "node_modules", SERVER.replace("ON_TEST", "process.kill(process.pid, 'SIGKILL')"))
    async with adapter_on(root) as adapter:
        mutants = await discovered(adapter)
        for _ in range(2):
            with pytest.raises(ToolError, match=r"StrykerJS ended unexpectedly \(killed by SIGKILL\)"):
                await results_of(adapter, mutants)
        (core / "bin/stryker.js").write_text(KILLS)
        assert [result.mutant for result in await results_of(adapter, mutants)] == mutants


async def test_garbage_between_messages_is_skipped(tmp_path: Path) -> None:
    root = copied("js_mocha", tmp_path, None)
    noise = "process.stdout.write('Content-Length: 7\\r\\n\\r\\ngarbage\\u0000Content-Length: x\\r\\n\\r\\n' + '.'.repeat(200000));\n"
    scripted_core(root / "node_modules", noise + SERVER)
    async with adapter_on(root) as adapter:
        assert [json.dumps(mutant.path) for mutant in await discovered(adapter)] == ['"lib/price.js"']


async def test_links_to_directories_and_to_nowhere_are_the_same_in_the_copy(tmp_path: Path) -> None:
    root = copied("js_mocha", tmp_path)
    (root / "lib/circle.js").symlink_to("circle.js")
    (root / "data").mkdir()
    (root / "data/rates.json").write_text("[]")
    for directory in ("linked", "ignored"):
        (root / directory).mkdir()
        (root / directory / "data").symlink_to(root / "data")
    configure(root, ignorePatterns=["ignored"])
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/more.json").write_text("[]")
    (root / "outside").symlink_to(tmp_path / "outside")
    spec = root / "test/linked.spec.js"
    spec.write_text(
        "import { lstatSync, readFileSync } from 'node:fs';\n"
        "it('reads through links', () => {\n"
        "  readFileSync('linked/data/rates.json');\n"
        "  readFileSync('outside/more.json');\n"
        "  if (!lstatSync('linked/data').isSymbolicLink()) throw new Error('it is no link');\n"
        "  if (lstatSync('ignored/data', { throwIfNoEntry: false })) throw new Error('it is there');\n"
        "});\n"
    )
    async with adapter_on(root) as adapter:
        mutants = await discovered(adapter)
        [told] = await unusable(adapter)
        assert told.startswith("lib/circle.js: StrykerJS can't instrument it: ELOOP")
        assert len(await results_of(adapter, mutants[:1])) == 1


async def test_a_directory_that_node_cannot_name_is_refused(tmp_path: Path) -> None:
    above = tmp_path / os.fsdecode(b"no text \xff")
    above.mkdir()
    root = copied("js_mocha", above)
    await refusal(adapter_on(root), ToolError, "is no UTF-8 text: rename the directory")


ENDS_AT_ONCE = """
const body = (message) => Buffer.from(JSON.stringify({ jsonrpc: '2.0', ...message }));
const send = (message) => {
  process.stdout.write(`Content-Length: ${body(message).length}\\r\\n\\r\\n${body(message)}`);
};
const mutants = [1, 2, 3].map((line) => ({
  fileName: process.cwd() + '/lib/price.js', mutatorName: 'Any', replacement: 'x', status: 'Killed',
  location: { start: { line, column: 0 }, end: { line, column: 1 } },
}));
if (process.env.MSP_BRIDGE_DISCOVER) send({ method: 'msp-bridge/plan', params: { mutants } });
else for (const mutant of mutants) send({ method: 'msp-bridge/tested', params: mutant });
"""


async def test_the_last_results_are_taken_though_the_command_line_has_ended(lasting: Path) -> None:
    root = scripted(lasting, ENDS_AT_ONCE, "8.7.0")
    async with adapter_on(root) as adapter:
        mutants = await discovered(adapter)
        assert {mutant.path for mutant in mutants} == {"lib/price.js"}, "isolated, it sees the project at its own path"
        running = RunningProcesses()
        async with contextlib.aclosing(adapter.test(mutants)) as results:
            first = await anext(results)
            assert await running.settled(0) == []
            assert [first.mutant, *[result.mutant async for result in results]] == mutants


async def test_a_sandbox_is_given_back_when_a_cancel_meets_its_cleaning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = scripted(tmp_path, SERVER)
    clear, clearing, may_clear = ProjectSandbox.clear, asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def slowly(sandbox: ProjectSandbox) -> None:
        loop.call_soon_threadsafe(clearing.set)
        may_clear.wait()
        clear(sandbox)

    async with adapter_on(root) as adapter:
        await discovered(adapter)
        monkeypatch.setattr(ProjectSandbox, "refresh", lambda *_: frozenset())
        monkeypatch.setattr(ProjectSandbox, "clear", slowly)
        for _ in range(3):
            clearing.clear()
            may_clear.clear()
            request = asyncio.create_task(discovered(adapter))
            await clearing.wait()
            request.cancel()
            may_clear.set()
            await asyncio.wait([request])
            assert request.cancelled()
    assert [lock.name for lock in (root.parent / "cache").rglob("copy-*.lock")] == ["copy-0.lock"]


@pytest.mark.usefixtures("portable")
async def test_a_plugin_that_is_not_found_or_can_not_be_loaded_is_named_by_doctor_and_when_tests_are_to_run(
    tmp_path: Path,
) -> None:
    root = copied("js_mocha", tmp_path)
    configure(root, plugins=[])  # what pnpm makes of the default pattern, for it keeps packages apart
    (root / "pnpm-lock.yaml").write_text("")
    package = "@stryker-mutator/mocha-runner"
    version = json.loads((CORE9 / "@stryker-mutator/core/package.json").read_text())["version"]
    write = f'write "plugins": ["{package}"] in StrykerJS\'s configuration'
    async with adapter_on(root) as adapter:
        (finding,) = [finding for finding in await findings_of(adapter) if finding.subject == "test runner"]
        assert (finding.good, finding.text) == (False, "StrykerJS finds no plugin for the test runner 'mocha'")
        assert finding.remedy == f"pnpm add -D {package}@{version}, and {write}, or correct `testRunner` there"
        with pytest.raises(ConfigurationError) as caught:
            await results_of(adapter, (await discovered(adapter))[:1])
        assert (caught.value.problem, caught.value.remedy) == (finding.text, finding.remedy)
        configure(root, plugins=["./runner.mjs"])
        (root / "runner.mjs").write_text("throw new Error('it needs mocha 11');\n")
        (finding,) = [finding for finding in await findings_of(adapter) if finding.subject == "test runner"]
        assert not finding.good
        assert "runner.mjs can't be loaded (it needs mocha 11)" in finding.text
        (root / "runner.mjs").unlink()


def test_a_plugin_that_can_not_be_loaded_is_named_with_the_reason(tmp_path: Path) -> None:
    logged = '12:00:00 (7) WARN PluginLoader Error during loading "@stryker-mutator/mocha-runner" plugin:\n  no such export\n'
    error = failure(
        'Cannot find TestRunner plugin "mocha". No TestRunner plugins were loaded.', BaselineFailure(), logged, tmp_path
    )
    assert str(error).startswith("@stryker-mutator/mocha-runner can't be loaded (no such export): install versions")


def test_a_package_that_stryker_js_itself_needs_is_named_with_the_command_that_installs_it(tmp_path: Path) -> None:
    said = "Cannot find package 'typescript' imported from /p/ts-config-preprocessor.js\n  code: 'ERR_MODULE_NOT_FOUND'"
    error = failure(said, BaselineFailure(), "", tmp_path)
    assert error.problem == "the package typescript is not installed, which /p/ts-config-preprocessor.js imports"
    assert str(error.remedy) == "npm install --save-dev typescript"


def test_a_wrong_option_is_named_without_what_node_shows_besides(tmp_path: Path) -> None:
    wrong = 'Config option "coverageAnalysis" should be one of the allowed values ("off", "all", or "perTest").'
    said = "Please correct this configuration error and try again."
    thrown = f'An unexpected error occurred while executing "discover" JSON-RPC method: ConfigError: {said}'
    logged = f"12:00:00 (7) ERROR OptionsValidator {wrong}\n{thrown}\n    at validate (x.js:1:2) {{\n  inner: undefined\n}}\n"
    error = failure(said, BaselineFailure(), logged, tmp_path)
    assert error.problem == f"StrykerJS's configuration is wrong ({wrong})"


def test_a_mutant_that_vue_does_not_take_is_named_with_the_comment_that_leaves_it_out(tmp_path: Path) -> None:
    error = "Error: [@vue/compiler-sfc] `defineProps()` in <script setup> cannot reference locally declared variables"
    found = failure("Something went wrong in the initial test run", BaselineFailure(error), "", tmp_path)
    remedy = "put `// Stryker disable all` above defineProps() in that file, and `// Stryker restore all` below it"
    assert (error in found.problem, found.remedy) == (True, remedy)


def test_tests_in_mochas_other_interface_are_named_with_the_option(tmp_path: Path) -> None:
    baseline = BaselineFailure("ReferenceError: suite is not defined")
    error = failure("Something went wrong in the initial test run", baseline, "", tmp_path)
    assert error.remedy == 'write "mochaOptions": {"ui": "tdd"} in StrykerJS\'s configuration'


def test_a_missing_environment_of_the_tests_is_named_with_the_command_that_installs_it(tmp_path: Path) -> None:
    (tmp_path / "package-lock.json").write_text("{}")
    baseline = BaselineFailure("MODULE_NOT_FOUND Cannot find module 'jest-environment-jsdom'")
    error = failure("Something went wrong in the initial test run", baseline, "", tmp_path)
    assert error.remedy == "npm install --save-dev jest-environment-jsdom"


def test_modules_that_node_js_needs_an_option_for_are_named_with_that_of_the_script(tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text('{"scripts": {"test": "NODE_OPTIONS=--experimental-vm-modules jest"}}')
    baseline = BaselineFailure("SyntaxError: Cannot use import statement outside a module")
    error = failure("Something went wrong in the initial test run", baseline, "", tmp_path)
    wanted = 'write "testRunnerNodeArgs": ["--experimental-vm-modules"] in StrykerJS\'s configuration'
    assert error.remedy == wanted


def test_where_a_linter_runs_before_the_tests_the_remedy_names_the_command_of_these_alone(tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text('{"scripts": {"lint": "eslint .", "test": "npm run lint && ava"}}')
    baseline = BaselineFailure(failing=[("All tests", "no-var")])
    error = failure("There were failed tests in the initial test run.", baseline, "", tmp_path)
    assert error.remedy is not None
    assert error.remedy.endswith("""write "commandRunner": {"command": "npx ava"} in StrykerJS's configuration""")


def test_a_build_that_fails_is_named_with_what_it_prints(tmp_path: Path) -> None:
    said = "Command failed with exit code 2: tsc -b\n\nsrc/a.ts(1,7): error TS2322"
    shown = "    at getFinalError (final-error.js:6:9) {\n  shortMessage: 'Command failed',\n  stdio: [\n    ''\n  ]\n}"
    logged = f"12:00:00 (7) ERROR Stryker Unexpected error occurred while running Stryker ExecaError: {said}\n{shown}\n"
    error = failure(said, BaselineFailure(), logged, tmp_path)
    assert str(error).startswith(
        "the project can't be built (Command failed with exit code 2: tsc -b\nsrc/a.ts(1,7): error TS2322): correct it"
    )
    other = failure(f"{said[8:]}", BaselineFailure(), logged, tmp_path)
    assert "shortMessage" not in other.problem
