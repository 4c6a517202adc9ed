"""Mutants in the processes and threads that tests start: `programs/started.cjs`; and which files of tests run for one."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from msp_bridge.adapters.stryker_js.launch import PROGRAMS
from support.adapters import discovered, results_of
from support.files import written
from support.stryker_js_trees import adapter_on, copied

from msp_bridge.adapter import Status

PROGRAM = """import { parentPort, workerData } from 'node:worker_threads';
export const grade = (points) => (points > 5 ? 'high' : 'low');
const square = (number) => number * number;
const greeting = (name) => (name === 'x' ? 'ready' : 'asleep');
const loose = (number) => number - 1;
const never = (number) => number / 1;

const [, , command, argument] = process.argv;
if (workerData?.side) parentPort.postMessage(square(workerData.side)); // Vitest has threads of its own
if (command === 'grade') process.stdout.write(grade(Number(argument)));
if (command === 'loose') loose(Number(argument));
if (command === 'never') never(Number(argument));
if (command === 'wait') {
  process.stdout.write(greeting(argument));
  setInterval(() => {}, 1000);
}
"""
IMPORTS = """import assert from 'node:assert';
import { grade } from '../PROGRAM';

it('is high or low', () => assert.ok(grade(5)));
"""
STARTS = """import assert from 'node:assert';
import { execFile, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Worker } from 'node:worker_threads';

const file = fileURLToPath(new URL('../PROGRAM', import.meta.url));
it('prints', () => assert.equal(execFileSync(process.execPath, [file, 'grade', '5'], { encoding: 'utf8' }), 'low'));
it('needs no variables', async () => {
  await promisify(execFile)(process.execPath, [file, 'loose', '3'], { env: { PATH: process.env.PATH } });
});
it('computes in a thread', async () => {
  assert.deepEqual(await once(new Worker(file, { workerData: { side: 3 } }), 'message'), [9]);
});
it('greets until it is killed', async () => {
  const child = spawn(process.execPath, [file, 'wait', 'x']);
  const [text] = await once(child.stdout, 'data');
  child.kill('SIGKILL');
  assert.equal(String(text), 'ready');
});
"""
LOW = ["is high or low", "prints"]
WANTED = {  # by what replaces the code
    "points >= 5": (Status.KILLED, LOW),
    "number / number": (Status.KILLED, ["computes in a thread"]),
    "name !== 'x'": (Status.KILLED, ["greets until it is killed"]),
    "number + 1": (Status.SURVIVED, ["needs no variables"]),
    "number * 1": (Status.NO_COVERAGE, []),
}


@pytest.mark.parametrize(
    ("name", "program", "specs", "head"),
    [
        ("js_mocha", "lib/program.js", ("test/imports.spec.js", "test/starts.spec.js"), ""),
        (
            "js_vitest",
            "src/program.js",
            ("src/imports.test.ts", "src/starts.test.ts"),
            "import { it } from 'vitest';\n",
        ),
    ],
)
async def test_processes_and_threads_that_tests_start_have_the_mutant_and_their_coverage_counts(
    name: str, program: str, specs: tuple[str, str], head: str, tmp_path: Path
) -> None:
    root = copied(name, tmp_path)
    if name == "js_vitest":
        (root / "mutate.mjs").write_text("export const mutate = ['src/*.js'];\n")
    (root / program).write_text(PROGRAM)
    for spec, tests in zip(specs, (IMPORTS, STARTS), strict=True):
        (root / spec).write_text(head + tests.replace("PROGRAM", program))
    async with adapter_on(root) as adapter:
        mutants = [mutant for mutant in await discovered(adapter, program) if mutant.replacement in WANTED]
        results = await results_of(adapter, mutants)
    assert {each.mutant.replacement: (each.status, sorted(each.covered_by or ())) for each in results} == WANTED


async def test_with_jest_what_tests_start_and_what_they_share_within_a_file_counts(tmp_path: Path) -> None:
    """Jest looks for tests that import the mutated file, which one that starts a program doesn't do."""
    root = copied("js_jest", tmp_path)
    async with adapter_on(root) as adapter:
        results = await results_of(adapter, await discovered(adapter))
    found = {each.mutant.replacement: (each.status, sorted(each.covered_by or ())) for each in results}
    wanted = {
        "points >= 5": (Status.KILLED, LOW),
        "number - 1": (Status.KILLED, ["twice is a number"]),
        "number / 2": (Status.SURVIVED, ["twice is a number"]),
        "number * 2": (Status.NO_COVERAGE, []),
    }
    assert {name: found[name] for name in wanted} == wanted
    (seen_later,) = [each for each in results if each.mutant.replacement == "number - 1"]
    assert seen_later.killed_by == ("twice is seen",)


RUNNER = """export class ChildProcessTestRunnerWorker {
  constructor() {
    const runCLI = async (options) => options;
    this.underlyingTestRunner = { jestWrapper: Object.create({ runCLI }) };
  }
  mutantRun() {
    const options = { _: ['lib/price.js'], findRelatedTests: true, testNamePattern: 'adds' };
    return this.underlyingTestRunner.jestWrapper.runCLI(options, ['.']);
  }
}
"""
RUNS = """const [program, ...runs] = process.argv.slice(2);
await import(program);
const { core } = JSON.parse(process.env.MSP_BRIDGE_STRYKER);
const { ChildProcessTestRunnerWorker } = await import(`${core}/dist/src/test-runner/child-process-test-runner-worker.js`);
const runner = new ChildProcessTestRunnerWorker();
const options = [];
for (const testFiles of runs) options.push(await runner.mutantRun({ testFiles: JSON.parse(testFiles) }));
process.stdout.write(JSON.stringify(options));
"""


def test_jest_loads_the_files_of_a_mutants_tests_where_they_are_in_the_sandbox(tmp_path: Path) -> None:
    """Jest passes where it finds no file: a path of the project itself would have each mutant survive."""
    runner = tmp_path / "dist/src/test-runner/child-process-test-runner-worker.js"
    runner.parent.mkdir(parents=True)
    runner.write_text(RUNNER)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "runs.mjs").write_text(RUNS)
    runs = [json.dumps(files) for files in (["runs.mjs"], ["runs.mjs", "elsewhere.mjs"], None)]
    command = ["node", tmp_path / "runs.mjs", PROGRAMS / "jest_files.mjs", *runs]
    env = {**os.environ, "MSP_BRIDGE_STRYKER": json.dumps({"core": str(tmp_path)})}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=True, cwd=tmp_path)
    known, *others = json.loads(done.stdout)
    assert known == {"_": ["runs.mjs"], "findRelatedTests": False, "runTestsByPath": True, "testNamePattern": "adds"}
    assert [(each["_"], each["findRelatedTests"]) for each in others] == [(["lib/price.js"], True)] * 2


THREAD = """const { spawnSync } = require('node:child_process');
const { Worker } = require('node:worker_threads');
const SEEN = '[typeof globalThis.__stryker__, process.env.MSP_BRIDGE_STARTED, process.env.NODE_OPTIONS]';
const { stdout } = spawnSync(process.execPath, ['-p', `JSON.stringify(${SEEN})`], { encoding: 'utf8' });
console.log(stdout.trim());
const thread = new Worker(`require('node:worker_threads').parentPort.postMessage(${SEEN})`, { eval: true, env: ENV });
thread.on('message', (seen) => console.log(JSON.stringify(seen)));
"""


@pytest.mark.parametrize("variables", ["process.env", "{}"])
@pytest.mark.parametrize("option", ["--stack-trace-limit=20", "--no-warnings"])  # Node.js gives the first to no thread
def test_what_is_started_is_known_and_sees_none_of_our_variables(option: str, variables: str) -> None:
    command = ["node", option, "--require", PROGRAMS / "started.cjs", "-e", THREAD.replace("ENV", variables)]
    env = {**os.environ, "MSP_BRIDGE_STARTED": '{"place": "tests", "notes": "/nowhere"}'}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines() == ['["object",null,null]'] * 2


CONTEXTS = """import vm, { createContext, runInNewContext } from 'node:vm';
const code = 'typeof process + globalThis.__stryker__?.activeMutant';
const script = new vm.Script(code);
const context = { name: 1 };
console.log(vm.runInContext(code, createContext(context)), runInNewContext(code), vm.runInNewContext(code, Object.freeze({})));
console.log(script.runInNewContext(), script.runInNewContext({}), JSON.stringify(context));
"""


def test_a_script_in_a_context_of_its_own_has_the_mutant_and_what_the_test_gives_it_looks_the_same() -> None:
    command = ["node", "--require", PROGRAMS / "started.cjs", "--input-type=module", "-e", CONTEXTS]
    started = {"MSP_BRIDGE_STARTED": '{"place": "tests", "notes": "/nowhere"}', "__STRYKER_ACTIVE_MUTANT__": "7"}
    done = subprocess.run(
        command, env={**os.environ, **started}, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.split() == ["undefined7"] * 2 + ["undefinedundefined"] + ["undefined7"] * 2 + ['{"name":1}']


COVERAGE = """const { addCoverage } = await import(process.argv[1]);
const result = {};
addCoverage(result, ...JSON.parse(process.argv[2]));
process.stdout.write(JSON.stringify(result));
"""
STARTED = '[null,"7"]\n'


@pytest.mark.parametrize(
    ("noted", "reports", "coverage"),
    [
        ({}, True, {"static": {}, "perTest": {}}),
        ({"started": ""}, True, None),  # which may have run mutated code without Node.js
        ({"started": "", "1-0": STARTED}, True, {"static": {"7": 1}, "perTest": {}}),
        ({"1-0": STARTED}, False, None),  # the runner never says what is covered
    ],
)
def test_tests_that_run_no_mutated_code_cover_nothing_unless_they_start_what_may_not_be_node(
    noted: dict[str, str], reports: bool, coverage: dict[str, Any] | None, tmp_path: Path
) -> None:
    program, arguments = PROGRAMS / "coverage_notes.mjs", json.dumps([str(written(tmp_path, noted)), reports])
    command = ["node", "--input-type=module", "-e", COVERAGE, program, arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert json.loads(done.stdout).get("mutantCoverage") == coverage
