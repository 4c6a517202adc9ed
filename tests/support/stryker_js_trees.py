"""What the tests of the StrykerJS adapter share: trees with packages, adapters on them, and what they give."""

import contextlib
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from msp_bridge.adapters.stryker_js import StrykerJs

from msp_bridge.testing import TreeState
from support import projects
from support.adapters import detected
from support.servers import until

TESTS = Path(__file__).parents[1]
CORE8, CORE9, CORE10 = (TESTS / "npm" / name / "node_modules" for name in ("core8", "core9", "core10"))
BOTH = pytest.mark.parametrize("modules", [CORE9, CORE8], ids=["served", "command line"])


def copied(name: str, to: Path, modules: Path | None = CORE9) -> Path:
    """The project `name`, copied below `to`, with these packages."""
    root = projects.copied(name, to)
    if modules is not None:
        assert modules.is_dir(), f"{modules} is missing: `make test` installs it"
        (root / "node_modules").symlink_to(modules)
    return root


@contextlib.asynccontextmanager
async def adapter_on(root: Path, **options: Any) -> AsyncIterator[StrykerJs]:
    """The adapter that detects the tree. Afterwards no process is left, and nothing was written in the tree.

    It has one job: each further one starts a process of half a second for the tests, and another one when they are done.
    """
    tree, modules = TreeState.of(root), tree_of_modules(root)
    async with detected(StrykerJs, root, edited=True, **{"jobs": 1, **options}) as adapter:
        yield adapter
    assert [line for line in tree.differences(TreeState.of(root)) if line.endswith("has appeared")] == []
    assert tree_of_modules(root) == modules


def tree_of_modules(root: Path) -> list[str]:
    """The names in `node_modules`, which no test run may add to."""
    modules = root / "node_modules"
    return sorted(path.name for path in modules.iterdir()) if modules.is_dir() else []


def configure(root: Path, **options: Any) -> None:
    """Change options in stryker.config.json."""
    file = root / "stryker.config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | options))


# A server with one mutant: `ON_TEST` is what it does when asked to test.
SERVER = """
let chunk = Buffer.alloc(0);
const send = (message) => {
  const body = JSON.stringify({ jsonrpc: '2.0', ...message });
  process.stdout.write(`Content-Length: ${Buffer.byteLength(body)}\\r\\n\\r\\n${body}`);
};
const place = { start: { line: 1, column: 1 }, end: { line: 1, column: 7 } };
const mutant = { id: '1', mutatorName: 'Any', location: place, replacement: 'x' };
const answers = {
  configure: () => ({ version: '0.4.0' }),
  discover: () => ({ files: { 'lib/price.js': { mutants: [mutant] } } }),
  mutationTest: () => { ON_TEST },
};
process.stdin.on('data', (data) => {
  chunk = Buffer.concat([chunk, data]);
  for (let at; (at = chunk.indexOf('\\r\\n\\r\\n')) >= 0; ) {
    const length = Number(/\\d+/.exec(chunk.subarray(0, at).toString())[0]);
    if (chunk.length < at + 4 + length) return;
    const { id, method } = JSON.parse(chunk.subarray(at + 4, at + 4 + length));
    chunk = chunk.subarray(at + 4 + length);
    const result = answers[method]?.();
    if (id !== undefined && result !== undefined) send({ id, result });
  }
});
"""
TESTED = """send({ method: 'reportMutationTestProgress', params: { files: { 'lib/price.js':
  { mutants: [{ ...mutant, status: 'Killed' }] } } } });"""
KILLS = SERVER.replace("ON_TEST", f"{TESTED} return {{ files: {{}} }}")


def scripted_core(modules: Path, script: str, version: str = "9.6.1") -> Path:
    """A @stryker-mutator/core that does what `script` says, for what the real one won't do on demand."""
    core = modules / "@stryker-mutator" / "core"
    (core / "bin").mkdir(parents=True)
    (core / "package.json").write_text(json.dumps({"version": version, "engines": {"node": ">=18"}}))
    (core / "bin" / "stryker.js").write_text(script)
    return core


async def has_lines(file: Path, count: int) -> None:
    """Returns when `file` has `count` lines."""
    await until(lambda: file.exists() and len(file.read_text().splitlines()) >= count)


def running_with(word: str) -> list[psutil.Process]:
    """The processes below ours with an argument that is a file whose name begins with `word`."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):  # it has just ended
            if any(os.path.basename(argument).startswith(word) for argument in process.cmdline()):
                found.append(process)
    return found


def scripted(to: Path, script: str, version: str = "9.6.1") -> Path:
    """A project with such a core; its root."""
    root = copied("js_mocha", to, None)
    scripted_core(root / "node_modules", script, version)
    return root
