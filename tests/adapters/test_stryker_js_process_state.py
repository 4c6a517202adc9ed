"""A mutant that changes the process of its test runner changes no verdict of the mutants after it."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from msp_bridge.adapters.stryker_js.launch import PROGRAMS
from support.adapters import discovered, results_of
from support.stryker_js_trees import BOTH, adapter_on, copied

from msp_bridge.adapter import Mutant, Status

LEFT = {  # what a mutant does to its process: how a test sees it
    "Object.prototype.kept = 1;": "'kept' in {}",
    "Object.freeze(Array.prototype);": "Object.isFrozen(Array.prototype)",
    "fs.kept = 1;": "fs.kept === 1",
    "globalThis.kept = 1;": "globalThis.kept === 1",
    "process.env.KEPT = '1';": "process.env.KEPT === '1'",
    "process.on('kept', () => {});": "process.listenerCount('kept') > 0",
    "process.chdir('/');": "process.cwd() === '/'",
    "setInterval(() => {}, 1000);": "process.getActiveResourcesInfo().includes('Timeout')",
}
CHECK = "it('{n} keeps nothing', () => {{ assert.ok(!({seen})); assert.equal(keep{n}('x'), 'x'); assert.ok(!({seen})); }});\n"
UNMUTATED = """it('changes the process itself', () => {
  Date.prototype.counted = (Date.prototype.counted ?? 0) + 1;
  assert.equal(keep0('x'), 'x');
});
"""


def project(root: Path, functions: list[str], specs: list[str]) -> None:
    """Write lib/keep.js and its tests; each function does something to its process if its condition is mutated."""
    source = "".join(
        f"export function keep{n}(value) {{\n  if (value.length > 1) {{ {statement} }}\n  return value;\n}}\n"
        for n, statement in enumerate(functions)
    )
    (root / "lib/keep.js").write_text(f"import fs from 'node:fs';\n{source}")
    names = ", ".join(f"keep{n}" for n in range(len(functions)))
    head = (
        f"import assert from 'node:assert';\nimport fs from 'node:fs';\nimport {{ {names} }} from '../lib/keep.js';\n"
    )
    (root / "test/keep.spec.js").write_text(head + "".join(specs))


def at(mutant: Mutant) -> tuple[int, str]:
    """The line and the replacement."""
    return mutant.location.start.line, mutant.replacement


async def verdicts(root: Path) -> dict[tuple[int, str], Status]:
    """The status of each condition's mutants in one request, by line and replacement."""
    async with adapter_on(root) as adapter:
        mutants = [
            mutant for mutant in await discovered(adapter, "lib/keep.js") if mutant.replacement in ("true", "false")
        ]
        results = await results_of(adapter, mutants)
    return {at(result.mutant): result.status for result in results}


@BOTH
async def test_what_a_mutant_leaves_in_its_process_reaches_no_other_mutant(modules: Path, tmp_path: Path) -> None:
    """`test_each_kind_of_change_is_seen` has the other kinds."""
    root = copied("js_mocha", tmp_path, modules)
    left = dict(list(LEFT.items())[:2])
    specs = [CHECK.format(n=n, seen=seen) for n, seen in enumerate(left.values())]
    project(root, list(left), [*specs, UNMUTATED])
    found = await verdicts(root)
    assert len(found) == 2 * len(left)
    assert {key for key, status in found.items() if status is not Status.KILLED} == {
        key for key in found if key[1] == "false"
    }


RUNNER = """import fs from 'node:fs';
export class ChildProcessTestRunnerWorker {
  async dryRun() { return {}; }
  async mutantRun({ activeMutant }) { new Function('fs', activeMutant.statement)(fs); return {}; }
}
"""
EACH_IN_TURN = """const { core } = JSON.parse(process.env.MSP_BRIDGE_STRYKER);
const [program, ...statements] = process.argv.slice(2);
await import(program);
const runner = new (await import(`${core}/dist/src/test-runner/child-process-test-runner-worker.js`)).ChildProcessTestRunnerWorker();
const changed = [];
for (const statement of statements) {
  await runner.dryRun();
  changed.push((await runner.mutantRun({ activeMutant: { id: '1', statement } })).changed);
}
process.stdout.write(JSON.stringify(changed), () => process.exit());
"""


def test_each_kind_of_change_is_seen(tmp_path: Path) -> None:
    runner = tmp_path / "dist/src/test-runner/child-process-test-runner-worker.js"
    runner.parent.mkdir(parents=True)
    runner.write_text(RUNNER)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "each.mjs").write_text(EACH_IN_TURN)
    command = ["node", tmp_path / "each.mjs", PROGRAMS / "process_state.mjs", "1;", *LEFT]
    env = {**os.environ, "MSP_BRIDGE_STRYKER": json.dumps({"core": str(tmp_path)})}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=True)
    none, *each = json.loads(done.stdout)
    assert none == []
    assert len(each) == len(LEFT)
    assert all(each), dict(zip(LEFT, each, strict=True))


@BOTH
async def test_what_a_mutant_leaves_in_the_variables_of_modules_reaches_no_other_mutant(
    modules: Path, every_case: bool, tmp_path: Path
) -> None:
    """A counter that goes on makes the tests fail without any mutant; what is cached hides the mutants of what made it."""
    wanted = dict.fromkeys([(5, "calls -= 1"), (6, "false"), (6, "word.length >= 99")], Status.SURVIVED)
    wanted |= dict.fromkeys([(6, "true"), (6, "word.length <= 99"), (9, "number - number")], Status.KILLED)
    wanted |= dict.fromkeys([(15, "number >= 5"), (15, "true")], Status.KILLED)  # one of the two sizes is not cached
    root = copied("js_mocha", tmp_path, modules)
    (root / "lib/keep.js").write_text(
        "let calls = 0;\nconst cache = new Map();\nexport const count = () => calls;\n"
        "export function shout(word) {\n  calls += 1;\n  return word.length > 99 ? '' : word;\n}\n"
        "export function twice(number) {\n"
        "  if (!cache.has(number)) cache.set(number, number + number);\n  return cache.get(number);\n}\n"
        "let last = 9;\nexport const next = () => ++last;\n"
        "export function size(number) {\n"
        "  if (!cache.has(-number)) cache.set(-number, number > 5 ? 'big' : 'small');\n  return cache.get(-number);\n}\n"
    )
    (root / "test/keep.spec.js").write_text(
        "import assert from 'node:assert';\nimport { count, next, shout, size, twice } from '../lib/keep.js';\n"
        "describe('keep', () => {\n  before(() => assert.equal(count(), 0));\n"
        "  it('shouts', () => assert.equal(shout('a'), 'a'));\n});\n"
        "it('doubles', () => assert.equal(twice(3), 6));\n"
        "it('sizes', () => assert.deepEqual([size(5), size(next())], ['small', 'big']));\n"
    )
    async with adapter_on(root) as adapter:
        mutants = {at(mutant): mutant for mutant in await discovered(adapter, "lib/keep.js")}
        assert mutants.keys() > wanted.keys()
        chosen = [*mutants] if every_case else [*wanted][::2]
        results = await results_of(adapter, [mutants[each] for each in chosen])
    found = {at(result.mutant): result.status for result in results}
    assert found == {each: wanted.get(each, found[each]) for each in chosen}


KEPT = """const cache = new Map();
let sum = 0;
export function square(n) { if (!cache.has(n)) cache.set(n, n * n); return cache.get(n); }
export function put(n) { sum = n; }
export function close() { return sum > 100 ? 100 : sum; }
"""
KEPT_TESTS = """
it('is positive', () => assert.ok(square(3) > 0));
it('is a square', () => assert.equal(square(3), 9));
it('puts', () => put(5));
it('closes', () => assert.equal(close(), 5));
"""


@pytest.mark.parametrize(
    ("name", "source", "tests", "head"),
    [
        ("js_mocha", "lib/kept.js", "test/kept.spec.js", ""),
        ("js_vitest", "src/kept.js", "src/kept.test.ts", "import { it } from 'vitest';\n"),
    ],
)
async def test_tests_that_share_the_variables_of_modules_decide_together(
    name: str, source: str, tests: str, head: str, tmp_path: Path
) -> None:
    """One test computes what the next one finds, and one needs what the one before it has left."""
    root = copied(name, tmp_path)
    if name == "js_vitest":
        (root / "mutate.mjs").write_text("export const mutate = ['src/*.js'];\n")
    (root / source).write_text(KEPT)
    head += f"import assert from 'node:assert';\nimport {{ close, put, square }} from '../{source}';\n"
    (root / tests).write_text(head + KEPT_TESTS)
    wanted = {
        "n / n": Status.KILLED,
        "sum >= 100": Status.SURVIVED,
        "sum <= 100": Status.KILLED,
    }
    async with adapter_on(root) as adapter:
        mutants = [mutant for mutant in await discovered(adapter, source) if mutant.replacement in wanted]
        results = await results_of(adapter, mutants)
    assert {result.mutant.replacement: result.status for result in results} == wanted


async def test_a_change_that_comes_late_is_not_the_next_mutants(tmp_path: Path) -> None:
    root = copied("js_mocha", tmp_path)
    late = "setTimeout(() => { Object.prototype.late = 1; }, 150).unref();"  # nothing shows that it is to come
    waits = """it('waits', async () => {
      assert.equal(keep0('x'), 'x');
      await new Promise((resolve) => setTimeout(resolve, 100));
      assert.equal({}.late, undefined);
    });
    """
    project(root, [late], [waits])
    found = await verdicts(root)
    assert [status for (_, replacement), status in found.items() if replacement == "false"] == [Status.SURVIVED]


async def test_what_a_mutant_leaves_behind_reaches_no_later_request(tmp_path: Path) -> None:
    root = copied("js_mocha", tmp_path)
    left = {
        "Object.prototype.kept = 1;": "'kept' in {}",
        "fs.writeFileSync('kept.txt', '');": "fs.existsSync('kept.txt')",
    }
    project(root, list(left), [CHECK.format(n=n, seen=seen) for n, seen in enumerate(left.values())])
    async with adapter_on(root) as adapter:
        mutants = await discovered(adapter, "lib/keep.js")
        pollute = [mutant for mutant in mutants if mutant.replacement == "true"]
        harmless = [mutant for mutant in mutants if mutant.replacement == "false"]
        for polluting, other in zip(pollute, harmless, strict=True):
            for mutant, status in ((other, Status.SURVIVED), (polluting, Status.KILLED), (other, Status.SURVIVED)):
                assert [result.status for result in await results_of(adapter, [mutant])] == [status]
