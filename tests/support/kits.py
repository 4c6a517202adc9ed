"""Kits: for each adapter a small project in which a mutant of one function does one particular harm, and how to read it.

A further tool is one more Kit in KITS: its project, the mutator that turns `+` into `-`, and the harms in its language.
"""

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve, field, frozen

from msp_bridge.isolation import namespaces
from support.files import written

MARK = f"msp-bridge-fault-{os.getpid()}"  # an argument of whatever the harms leave running
NICE = 19  # the lowest of all: the priority of what hangs, which is seen from outside of any namespace

PYTHON_HARMS = {
    "steady": "pass",
    "slow": "pass",
    "hang": f"os.nice({NICE})\n        signal.signal(signal.SIGTERM, signal.SIG_IGN)\n        while True: time.sleep(0.01)",
    "stop": "os.kill(os.getpid(), signal.SIGSTOP)",
    "leave": "os._exit(3)",
    "kill_self": "os.kill(os.getpid(), signal.SIGKILL)",
    "kill_parent": "os.kill(os.getppid(), signal.SIGKILL)\n        time.sleep(1000)",
    "flood": "[os.write(1 + n % 2, b'x' * 999 + b'\\n') for n in range(20_000)]",
    "garbage": "os.write(1, bytes(range(256))), os.write(2, b'{\"id\": 1}\\n' + bytes(range(256)))",
    "close": "os.closerange(0, 1000)",
    "daemon": f"os.fork() or (os.setsid(), os.fork() or os.execv(sys.executable, [sys.executable, '-c', "
    f"'import time; time.sleep(1000)', '{MARK}']), os._exit(0))",
    "many": f"[subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(1000)', '{MARK}'], "
    "start_new_session=bool(n % 2)) for n in range(10)]",
}


@frozen
class Kit:
    """One adapter on a project whose files are `files`."""

    adapter: str
    files: Mapping[str, str]
    source: str  # the file with one function for each harm
    tests: str  # the file with one test for each harm
    harms: tuple[str, ...]  # all that there are; `steady` does none, `slow` only takes its time
    texts: Callable[[Sequence[str]], Mapping[str, str]]  # the source and the tests that do these harms
    mutator: str  # the one mutant of each function that the trials ask for
    definition: str  # the line that begins a function, as a pattern whose first group is its name
    red: str  # a test that always fails
    endless: tuple[str, str]  # a test that never ends, and a test module that can't be imported for ever
    importing: str  # a test of the function `steady` of all modules beside the source that have these `names`
    literal: Callable[[object], str] = ascii  # a list of names in the tests' language
    statuses: Mapping[str, str] = field(factory=dict)  # where the tool's own answer to a harm isn't `Killed`
    configuration: str = ""  # the file that sets the tool up
    timeouts: tuple[str, ...] = ()  # constants that say how many seconds a tool may take to answer for the first time
    limit: tuple[str, str] = ("", "")  # what of the configuration says how long all tests may take, and less
    links: Mapping[str, Path] = field(factory=dict)  # what is installed, and where it is
    limit_constant: str = ""  # where the configuration doesn't say
    timeless: str = "the tests (take|have not ended within) 8.* s,? without any mutant"  # the message for `endless`
    nameless: str = ""  # the message for a project in a directory whose name is no UTF-8 text, if it can't be tested
    unnameable: tuple[str, ...] = ()  # what a source's name can't have, for the tool

    def lay_out(self, root: Path, *harms: str) -> Path:
        """The project at `root`, with a function and a test for each of `harms`."""
        written(root, {**self.files, **self.texts(harms or ("steady",))})
        for path, target in self.links.items():
            assert target.is_dir(), f"{target} is missing: `make test` installs it"
            (root / path).symlink_to(target)
        return root

    def chosen(self, root: Path, mutants: Sequence[tuple[str, dict[str, Any]]]) -> dict[str, dict[str, Any]]:
        """The mutant of each function of `source`, by the function's name."""
        names = [re.match(self.definition, line) for line in (root / self.source).read_text().splitlines()]
        found = {}
        for path, mutant in mutants:
            if path == self.source and mutant["mutatorName"] == self.mutator:
                line = mutant["location"]["start"]["line"]
                found[next(name[1] for name in names[line - 1 :: -1] if name)] = mutant
        return found

    def status(self, harm: str) -> str:
        """What the mutant that does `harm` must get."""
        return self.statuses.get(harm, "Killed")


def python_texts(harms: Sequence[str]) -> dict[str, str]:
    """The source and the tests; `slow` takes its time, so that others come to harm meanwhile."""
    functions = [f"def {harm}(a, b):\n    return a + b\n" for harm in harms]
    tests = [
        f"def test_{harm}():\n    {'time.sleep(0.3)' if harm == 'slow' else 'pass'}\n"
        f"    if ops.{harm}(5, 3) != 8:\n        {PYTHON_HARMS[harm]}\n    assert ops.{harm}(5, 3) == 8\n"
        for harm in harms
    ]
    imports = "import os, signal, subprocess, sys, time\nfrom calc import ops\n"
    return {"calc/ops.py": "\n\n".join(functions), "tests/test_ops.py": "\n\n".join([imports, *tests])}


def with_files(kit: Kit, files: Mapping[str, str]) -> Kit:
    """The kit with more files, or with other ones."""
    return evolve(kit, files={**kit.files, **files})


PYTHON: dict[str, Any] = {
    "source": "calc/ops.py",
    "tests": "tests/test_ops.py",
    "harms": tuple(PYTHON_HARMS),
    "texts": python_texts,
    "definition": r"def (\w+)\(",
    "importing": "from importlib import import_module\ndef test_all():\n    for name in {names}:\n"
    "        assert import_module(f'calc.{{name}}').steady(5, 3) == 8\n",
    "endless": ("\n\ndef test_endless():\n    time.sleep(1000)\n", "\ntime.sleep(1000)\n"),
    "red": "def test_red():\n    assert 1 == 2, 'it is red'\n",
}
BESIDES = {"calc/__init__.py": "", "conftest.py": ""}
# In a process namespace, 0 is the parent: the tests kill themselves. Elsewhere they kill our server, twice.
KILLED_PARENT = "Killed" if "pid" in namespaces.probe()[0] else "RuntimeError"
MUTMUT = Kit(
    "mutmut",
    {
        **BESIDES,
        "pyproject.toml": '[tool.mutmut]\nsource_paths = ["calc"]\n'
        'pytest_add_cli_args_test_selection = ["tests"]\ntimeout_constant = 3\ntimeout_multiplier = 1\n',
    },
    mutator="operator: + to -",
    statuses={
        "hang": "Timeout",
        "stop": "Timeout",
        "leave": "RuntimeError",
        "kill_self": "RuntimeError",
        "kill_parent": "RuntimeError",
        "close": "RuntimeError",
    },
    configuration="pyproject.toml",
    limit_constant="msp_bridge.python_engine.plan.BASELINE_TIMEOUT_S",
    timeouts=("msp_bridge.toolkit.json_lines.START_TIMEOUT_S",),
    **PYTHON,
)
COSMIC_RAY = Kit(
    "cosmic-ray",
    {
        **BESIDES,
        "cosmic-ray.toml": '[cosmic-ray]\nmodule-path = "calc"\ntimeout = 4\ntest-command = "python -m pytest -x -q tests"\n',
    },
    mutator="BinaryOperator: + -> -",
    statuses={
        "hang": "Timeout",
        "stop": "Timeout",
        "kill_parent": KILLED_PARENT,
    },
    configuration="cosmic-ray.toml",
    limit=("timeout = 4", "timeout = 1"),
    timeless="the tests have not ended within 13 s, without any mutant",
    limit_constant="msp_bridge.adapters.cosmic_ray.adapter.BASELINE_START_S",
    timeouts=("msp_bridge.toolkit.json_lines.START_TIMEOUT_S",),
    **PYTHON,
)
JAVASCRIPT_HARMS = {
    "steady": "",
    "slow": "",
    "hang": f"os.setPriority({NICE}); for (;;) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1000);",
    "stop": "process.kill(process.pid, 'SIGSTOP');",
    "leave": "process.exit(3);",
    "kill_self": "process.kill(process.pid, 'SIGKILL'); for (;;);",
    "flood": "for (let n = 0; n < 20000; n++) fs.writeSync(1 + n % 2, 'x'.repeat(999) + '\\n');",
    "garbage": "for (const to of [1, 2]) fs.writeSync(to, Buffer.from(Array.from({ length: 256 }, (_, n) => n)));",
    "daemon": "spawned(true);",
    "many": "for (let n = 0; n < 10; n++) spawned(n % 2 === 0);",
}
JAVASCRIPT_IMPORTS = f"""import assert from 'node:assert';
import fs from 'node:fs';
import os from 'node:os';
import {{ spawn }} from 'node:child_process';
import * as ops from '../lib/ops.js';
const wait = (seconds) => new Promise((resolve) => setTimeout(resolve, seconds * 1000));
const spawned = (detached) =>
  spawn(process.execPath, ['-e', 'setTimeout(() => {{}}, 1e6)', '{MARK}'], {{ detached, stdio: 'ignore' }}).unref();
"""


def javascript_texts(harms: Sequence[str]) -> dict[str, str]:
    """The source and the tests."""
    functions = [f"export function {harm}(a, b) {{\n  return a + b;\n}}\n" for harm in harms]
    tests = [
        f"it('{harm}', async () => {{\n  await wait({0.3 if harm == 'slow' else 0});\n"
        f"  if (ops.{harm}(5, 3) !== 8) {{ {JAVASCRIPT_HARMS[harm]} }}\n  assert(ops.{harm}(5, 3) == 8);\n}});\n"
        for harm in harms
    ]
    return {"lib/ops.js": "\n".join(functions), "test/ops.spec.js": "\n".join([JAVASCRIPT_IMPORTS, *tests])}


STRYKER_CONFIG = (
    '{"testRunner": "mocha", "coverageAnalysis": "perTest", "timeoutMS": 2000, "mutate": ["lib/**/*.js"], '
    '"plugins": ["@stryker-mutator/mocha-runner"]}'
)
STRYKER_JS = Kit(
    "stryker-js",
    {
        "package.json": '{"type": "module", "devDependencies": {"@stryker-mutator/core": "*"}}',
        ".mocharc.json": '{"spec": ["test/**/*.js"]}',
        "stryker.config.json": STRYKER_CONFIG,
    },
    source="lib/ops.js",
    tests="test/ops.spec.js",
    definition=r"export function (\w+)\(",
    harms=tuple(JAVASCRIPT_HARMS),
    texts=javascript_texts,
    mutator="ArithmeticOperator",
    red="it('test_red', () => { throw new Error('it is red'); });\n",
    endless=("it('endless', () => wait(1000)).timeout(0);\n", "await wait(1000);\n"),
    importing="import assert from 'node:assert';\nimport path from 'node:path';\nimport {{ pathToFileURL }} from 'node:url';\n"
    "const names = {names};\nfor (const name of names) it(name, async () => {{\n"
    "  const {{ steady }} = await import(pathToFileURL(path.resolve('lib', name + '.js')).href);\n"
    "  assert(steady(5, 3) == 8);\n}});\n",
    statuses={"hang": "Timeout", "stop": "Timeout", "leave": "RuntimeError", "kill_self": "RuntimeError"},
    configuration="stryker.config.json",
    timeless=r"the tests took too long \(see dryRunTimeoutMinutes\)",
    timeouts=("msp_bridge.adapters.stryker_js.installation.NODE_TIMEOUT_S",),
    limit=('"timeoutMS"', '"dryRunTimeoutMinutes": 0.02, "timeoutMS"'),
    links={"node_modules": Path(__file__).parents[1] / "npm/core9/node_modules"},
    literal=json.dumps,
    nameless="is no UTF-8 text: rename the directory",
    unnameable=("\udcff", "\\"),  # the second is a separator to StrykerJS
)
KITS = [MUTMUT, COSMIC_RAY, STRYKER_JS]
PYTHON_KITS = [MUTMUT, COSMIC_RAY]  # whose tool is a package of the project's interpreter
each_kit = pytest.mark.parametrize("kit", KITS, ids=lambda kit: kit.adapter)
# For what happens around the tests: the engine that tests mutmut's mutants tests cosmic-ray's, in the same copy.
each_engine = pytest.mark.parametrize("kit", [MUTMUT, STRYKER_JS], ids=lambda kit: kit.adapter)
