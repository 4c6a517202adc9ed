"""NoCoverage: no test may be overlooked that runs a line only where another test has not run it before."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support.mutmut_trial import PACKAGE, Trial

from msp_bridge.adapter import Status

CALC = b"""KEPT = {}


def compute(n):
    if n not in KEPT:
        KEPT[n] = slow(n)
    return KEPT[n]


def slow(n):
    return n * 3
"""
TEST = "from pkg.calc import compute\n\n\ndef test_it():\n    assert compute(2) == 6\n"
BESIDE = "\n\ndef test_beside():\n    pass\n"
FIRST, SECOND = "tests/test_a.py", "tests/test_b.py"
FILES = {**PACKAGE, "pkg/calc.py": CALC, FIRST: (TEST + BESIDE).encode(), SECOND: TEST.encode()}


async def killers_of_slow(trial: Trial) -> set[tuple[Status, tuple[str, ...]]]:
    """How the mutants of the function end whose result is kept, and by which tests."""
    found = [result for name, result in (await trial.test()).items() if "x_slow_" in name]
    assert len(found) == 2
    return {(result.status, result.killed_by) for result in found}


def edit(trial: Trial) -> None:
    trial.edit(FIRST, "    assert compute(2) == 6\n", "    pass\n")


def delete(trial: Trial) -> None:
    trial.write(FIRST, BESIDE)


def delete_file(trial: Trial) -> None:
    trial.delete(FIRST)


@pytest.mark.parametrize("restarted", [False, True], ids=["the same server", "the next one"])
@pytest.mark.parametrize("change", [edit, delete, delete_file])
async def test_after_a_change_a_test_runs_what_the_changed_one_had_computed_for_it(
    tmp_path: Path, change: Callable[[Trial], None], restarted: bool
) -> None:
    async with Trial.of(FILES, tmp_path) as trial:
        assert await killers_of_slow(trial) == {(Status.KILLED, (f"{FIRST}::test_it",))}
        change(trial)
        found = None if restarted else await killers_of_slow(trial)
    if restarted:
        async with Trial.of({}, tmp_path) as trial:
            found = await killers_of_slow(trial)
    assert found == {(Status.KILLED, (f"{SECOND}::test_it",))}


async def test_a_test_runs_what_importing_another_test_file_had_computed_for_it(tmp_path: Path) -> None:
    at_import = "from pkg.calc import compute\n\nSIX = compute(2)\n"
    async with Trial.of({**FILES, FIRST: (at_import + BESIDE).encode()}, tmp_path) as trial:
        assert await killers_of_slow(trial) == {(Status.KILLED, (f"{SECOND}::test_it",))}
        trial.write(FIRST, BESIDE)
        assert await killers_of_slow(trial) == {(Status.KILLED, (f"{SECOND}::test_it",))}


async def test_a_test_kills_what_only_a_failing_one_was_seen_to_run(tmp_path: Path) -> None:
    async with Trial.of({**FILES, FIRST: TEST.replace("== 6", "== 7").encode()}, tmp_path) as trial:
        assert await killers_of_slow(trial) == {(Status.KILLED, (f"{SECOND}::test_it",))}


STARTS = b"""import sys

NOT_LOADED = "multiprocessing" not in sys.modules


def test_process():
    assert NOT_LOADED
    import multiprocessing
    from pkg.calc import compute

    context = multiprocessing.get_context("METHOD")
    process = context.Process(target=compute, args=("x",))
    process.start()
    process.join()
    assert process.exitcode == 0
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
async def test_what_a_process_runs_that_a_test_starts_is_tested(tmp_path: Path, method: str) -> None:
    """The test is also told that nobody has imported multiprocessing before it."""
    calc = CALC.replace(b"    return KEPT[n]\n", b"    assert KEPT[n] == 'xxx'\n")
    files = {**FILES, "pkg/calc.py": calc, FIRST: STARTS.replace(b"METHOD", method.encode()), SECOND: b""}
    async with Trial.of(files, tmp_path) as trial:
        assert await killers_of_slow(trial) == {(Status.KILLED, (f"{FIRST}::test_process",))}
        assert not trial.notices


PROCESS = b"""class BaseProcess:
    def start(self, code):
        from .popen_own import run

        return run(code)
"""
POPEN = b"""import os, sys
from multiprocessing.util import spawnv_passfds  # no audit event


def run(code):
    os.environ["PYTHONPATH"] = "."
    return os.waitpid(spawnv_passfds(os.fsencode(sys.executable), [sys.executable, "-c", code], ()), 0)[1]
"""
OWN = b"""from own.process import BaseProcess


def test_first():
    assert BaseProcess().start("") == 0


def test_second():
    assert BaseProcess().start("from pkg.calc import slow; assert slow(2) == 6") == 0
"""


async def test_what_a_process_of_a_copy_of_multiprocessing_runs_is_tested(tmp_path: Path) -> None:
    """Such as multiprocess, billiard and loky."""
    own = {"tests/own/__init__.py": b"", "tests/own/process.py": PROCESS, "tests/own/popen_own.py": POPEN}
    async with Trial.of({**FILES, **own, FIRST: OWN, SECOND: b""}, tmp_path) as trial:
        assert await killers_of_slow(trial) == {(Status.KILLED, (f"{FIRST}::test_second",))}


PROGRAM = b"""import os, subprocess, sys, tempfile

from pkg.calc import compute

HERE = os.path.dirname(sys.executable)
ENVIRONMENT = {**os.environ, "PATH": HERE + os.pathsep + os.environ["PATH"], "PYTHONPATH": "."}


def script(interpreter, text):
    with open(tempfile.mkdtemp() + "/tool", "w", opener=lambda *_: os.open(_[0], os.O_CREAT | os.O_WRONLY, 0o755)) as file:
        file.write(f"#!{interpreter}\\n{text}\\n")
    return file.name


def test_process():
    subprocess.run(START, check=True, env=ENVIRONMENT)
"""


@pytest.mark.parametrize(
    "start",
    [
        '["sh"], text=True, input=f"{sys.executable} -c \'import pkg.check\'"',
        '["env", "pytest", "-p", "pkg.check", "--markers"]',
        '["make", "check"]',
        '[script("/usr/bin/env python3", "import pkg.check")]',
        '[script("/bin/sh", "exec python -m pkg.check")]',
        '["true"], preexec_fn=lambda: compute("x") == "xxx" or os._exit(1)',
    ],
    ids=[
        "a shell's input",
        "by another program",
        "by a file of make",
        "a script",
        "a shell's script",
        "before the program",
    ],
)
async def test_what_a_program_runs_that_is_started_in_another_way_is_tested(tmp_path: Path, start: str) -> None:
    check = b'from pkg.calc import compute\n\nassert compute("x") == "xxx"\n'
    test = PROGRAM.replace(b"START", start.encode())
    files = {"pkg/check.py": check, "Makefile": b"check:\n\tpython -m pkg.check\n", FIRST: test, SECOND: b""}
    async with Trial.of({**FILES, **files}, tmp_path) as trial:
        assert await killers_of_slow(trial) == {(Status.KILLED, (f"{FIRST}::test_process",))}


INTERPRETER = b"""try:
    import _interpreters as interpreters
except ImportError:  # before Python 3.13
    import _xxsubinterpreters as interpreters

CODE = "import sys; sys.path.insert(0, '.'); from pkg.calc import compute; assert compute(2) == 6"


def test_it():
    assert interpreters.run_string(interpreters.create(), CODE) is None
"""


async def test_what_another_interpreter_runs_in_the_same_process_is_tested(tmp_path: Path) -> None:
    async with Trial.of({**FILES, FIRST: INTERPRETER, SECOND: b""}, tmp_path) as trial:
        assert await killers_of_slow(trial) == {(Status.KILLED, (f"{FIRST}::test_it",))}


TRACED = b"""import sys

from pkg.calc import compute

FOUND = []


def call(*_):
    if not FOUND:
        FOUND.append(compute(2))


def test_it():
    SET
    assert FOUND == [6]
"""


@pytest.mark.parametrize(
    "set_it", ["sys.setprofile(call), sys.setprofile(None)", "sys.addaudithook(call), open('x', 'w')"]
)
async def test_what_the_interpreter_calls_for_each_event_is_tested(tmp_path: Path, set_it: str) -> None:
    """From Python 3.12 on, `sys.monitoring` says nothing of it."""
    async with Trial.of({**FILES, FIRST: TRACED.replace(b"SET", set_it.encode()), SECOND: b""}, tmp_path) as trial:
        assert await killers_of_slow(trial) == {(Status.KILLED, (f"{FIRST}::test_it",))}


AUDITED = """import sys
sys.version_info = (3, 12)  # where the engine asks for it
from msp_bridge.python_engine.programs.unseen_calls import note_unseen_calls
note_unseen_calls(lambda: print("noted"))
exec("sys.addaudithook(lambda *_: None)", {"__name__": "NAME", "sys": sys})
"""


@pytest.mark.parametrize(("name", "noted"), [("pkg.calc", "noted\n"), ("filelock._core._fork", "")])
def test_what_audits_itself_alone_calls_nothing_of_the_project(name: str, noted: str) -> None:
    run = [sys.executable, "-c", AUDITED.replace("NAME", name)]
    assert subprocess.run(run, capture_output=True, text=True, check=True).stdout == noted


ONE_LINE = b"""def calc(n):
    if (n and
            n > 2): return "more"
    return "aaa"[:n + 1]
"""
COPIED = b"""def calc(n):
    def made():
        return "a" * (n + 1)

    made.__code__ = made.__code__.replace(co_name="copied")
    return made()
"""
LOCAL_CLASS = b"""def calc(n):
    class Page:
        size = n + 1

    return "a" * Page.size
"""
SUSPENDED = b"""def calc():
    yield 2
    yield (lambda n: "a" * n)(3)


MADE = calc()
FIRST = next(MADE)
"""
COMPILED = b"""IS_LOADED = False


def calc(n):
    if IS_LOADED:
        return "a" * (n + 1)
    return "aaa"
"""
LOADED = """from importlib.machinery import SourceFileLoader
from importlib.util import decode_source, module_from_spec, spec_from_file_location
from pathlib import Path


class Loader(SourceFileLoader):
    def source_to_code(self, data, path, *, _optimization=-1):
        return compile(decode_source(data).replace("IS_LOADED = False", "IS_LOADED = True"), path, "exec")


def test_it():
    path = str(Path("pkg/calc.py").resolve())
    spec = spec_from_file_location("loaded", path, loader=Loader("loaded", path))
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.calc(2) == "aaa"
"""
AT_FIRST = 'from pkg.calc import calc\n\n\ndef test_it():\n    assert calc(2) == "aaa"\n'
AT_IMPORT = 'from pkg.calc import MADE\n\n\ndef test_it():\n    assert next(MADE) == "aaa"\n'
LATE = 'def test_it():\n    from pkg.calc import calc\n\n    assert calc(2) == "aaa"\n'


@pytest.mark.parametrize(
    ("code", "test", "killed"),
    [
        pytest.param(ONE_LINE, AT_FIRST, 5, id="of a condition that has its block on the last of its lines"),
        pytest.param(COPIED, AT_FIRST, 7, id="of code that is copied while the test runs"),
        pytest.param(LOCAL_CLASS, LATE, 6, id="of a class in a function of a file that a test imports"),
        pytest.param(SUSPENDED, AT_IMPORT, 6, id="of code in a generator that an import has begun"),
        pytest.param(COMPILED, LOADED, 5, id="of a file that a loader compiles in its own way"),
    ],
)
async def test_a_mutant_is_covered(tmp_path: Path, code: bytes, test: str, killed: int) -> None:
    """Which of these were overlooked depended on how this Python notes lines: before 3.12, or from then on."""
    async with Trial.of({**PACKAGE, "pkg/calc.py": code, FIRST: test.encode()}, tmp_path) as trial:
        found = [result.status for name, result in (await trial.test()).items() if "x_calc_" in name]
    assert found.count(Status.KILLED) == killed
