"""Verdicts: the status that a fresh process gives with the mutant active from its start, and what is reported with it."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.mutmut_trial import Trial

from msp_bridge.adapter import BaselineError, Result, Status, ToolError
from msp_bridge.python_engine.programs.endings import gist, last_error

TABLE = b'[tool.mutmut]\nsource_paths = ["pkg"]\ntimeout_multiplier = 3\n'
PLUS = {"pyproject.toml": TABLE, "pkg/m.py": b"def f(a):\n    return a + 1\n"}


async def test_known_wrong_verdicts_of_mutmut_run_are_right_here_and_in_the_process_that_its_configuration_wants(
    tmp_path, every_case
):
    async with Trial.of("../corpus/known_wrong", tmp_path) as trial:
        results = await trial.test()
        squares = results["truth.at_import.x_squares__mutmut_1"]  # runs at import only
        assert (squares.status, squares.static, squares.covered_by) == (Status.KILLED, True, None)
        consistent = [result for handle, result in results.items() if "x_secret" in handle]
        assert {result.status for result in consistent} == {
            Status.SURVIVED
        }  # a process that imported before would kill
        fixture = [result for handle, result in results.items() if "x_expensive" in handle]
        assert {result.status for result in fixture} == {Status.KILLED}  # by the second test, which doesn't reach it
        shout = [result for handle, result in results.items() if "x_shout" in handle]
        assert {(result.status, result.mutant.mutator) for result in shout} == {
            (Status.KILLED, "operator: + to -"),
            (Status.KILLED, 'string: "!" to "XX!XX"'),
            (Status.SURVIVED, "string method: upper to lower"),
        }
        forgotten = results[
            "truth.state.x_remember__mutmut_1"
        ]  # by a test that needs the one before it, and says nothing alone
        assert (forgotten.mutant.mutator, forgotten.status) == ("argument: word to None", Status.KILLED)
        command = [result for handle, result in results.items() if "command.x_main" in handle]
        assert {result.status for result in command} == {Status.KILLED}  # in another process
        stop = results["truth.interrupting.x_stop__mutmut_1"]
        assert (stop.status, stop.status_reason) == (Status.KILLED, "KeyboardInterrupt: ")
        assert trial.notices == []
        trial.edit("pyproject.toml", "timeout_multiplier", 'process_isolation = "forkserver"\ntimeout_multiplier')
        cold = await trial.test([result.mutant for result in results.values()][: 6 if every_case else 2])
        assert {handle: results[handle].status for handle in cold} == {
            handle: result.status for handle, result in cold.items()
        }
        [remark] = map(str, trial.notices)
        assert remark.endswith("in a process that imports everything anew: the configuration asks for it")


async def test_every_field_of_a_result_is_filled(tmp_path):
    async with Trial.of("py_calc", tmp_path) as trial:
        results = await trial.test()
        assert len(results) == len(await trial.discover())
        add = results["calc.ops.x_add__mutmut_1"]
        assert add == Result(
            add.mutant,
            Status.KILLED,
            duration=add.duration,
            covered_by=("tests/test_ops.py::test_add",),
            killed_by=("tests/test_ops.py::test_add",),
            static=False,
            status_reason="AssertionError: one and two\nassert -1 == 3\n +  where -1 = add(1, 2)",
            tests_completed=1,
        )
        assert add.duration is not None
        assert 0 < add.duration < 5000
        untested = results["calc.ops.x_untested__mutmut_1"]
        assert (untested.status, untested.covered_by, untested.tests_completed) == (Status.NO_COVERAGE, (), 0)
        survived = [result for handle, result in results.items() if "x_absolute" in handle and "number" not in handle]
        assert {result.status for result in survived} == {Status.KILLED, Status.SURVIVED}
        assert all(result.killed_by is None for result in survived if result.status is Status.SURVIVED)
        assert {results[f"calc.ops.x_countdown__mutmut_{number}"].status for number in (3, 4)} == {Status.TIMEOUT}
        leave = [result for handle, result in results.items() if "x_leave" in handle]
        assert {(result.status, result.status_reason) for result in leave} >= {
            (Status.RUNTIME_ERROR, "the process of the tests ended by the mutant with exit code 0")
        }
        poke = results["calc.crash.x_poke__mutmut_1"]
        assert (poke.status, poke.status_reason) == (
            Status.RUNTIME_ERROR,
            "the process of the tests ended by SIGSEGV",
        )


ENDINGS = {
    "pyproject.toml": TABLE,
    "pkg/__init__.py": b"",
    "pkg/m.py": b"""import os


def leave(code):
    if code == 0:
        return code
    os._exit(70)


def lose(code):
    if code == 0:
        return code
    os._exit(71)


def limit():
    return 3


def hook():
    return 4
""",
    "conftest.py": b"""import sys

from pkg import m

if m.limit() != 3:
    sys.exit("limit")


def pytest_runtest_protocol():
    assert m.hook() == 4
""",
    "tests/test_m.py": b"""from pkg import m


def test_leave():
    assert m.leave(0) == m.lose(0) == 0
""",
}


def first_line(result: Result) -> str:
    """Of its reason."""
    return (result.status_reason or "").partition("\n")[0]


async def test_whatever_way_a_mutant_ends_pytest_it_is_the_mutants_end_and_not_ours(tmp_path):
    async with Trial.of(ENDINGS, tmp_path) as trial:
        mutants = await trial.discover()
        host = await trial.host()
        results = (await trial.test(mutants)).values()
        assert await trial.host() == host
    covered = [result for result in results if result.status is not Status.NO_COVERAGE]
    told = {(each.mutant.description.partition("__")[0], each.status, first_line(each)) for each in covered}
    ended = "the process of the tests ended by the mutant with exit code "
    assert told == {
        ("pkg.m.x_leave", Status.RUNTIME_ERROR, f"{ended}70"),
        ("pkg.m.x_lose", Status.RUNTIME_ERROR, f"{ended}71"),
        ("pkg.m.x_limit", Status.KILLED, "SystemExit: limit"),
        ("pkg.m.x_hook", Status.KILLED, "AssertionError: assert 5 == 4"),
    }


async def test_a_mutant_that_keeps_pytest_from_its_start_is_killed_with_what_pytest_says(tmp_path):
    files = {
        "pyproject.toml": TABLE.replace(b"pkg", b"iniconfig"),
        "iniconfig/__init__.py": b"""class ParseError(Exception): pass
class SectionWrapper: pass
class IniConfig(dict):
    def __init__(self, path): pass  # of the empty pytest.ini above a sandbox, where there are no namespaces


def limit():
    return 3


if limit() != 3:
    raise ValueError(limit())
""",
        "tests/test_m.py": b"import iniconfig\n\ndef test_limit():\n    assert iniconfig.limit() == 3\n",
    }
    async with Trial.of(files, tmp_path) as trial:
        [result] = (await trial.test()).values()
    assert (result.status, result.status_reason) == (Status.KILLED, "ValueError: 4")


async def test_tests_that_fail_without_a_mutant_are_named_in_each_request_and_kill_nothing(tmp_path):
    tests = b"from pkg.m import f\n\ndef test_good():\n    f(1)\n\ndef test_red():\n    assert f(1) == 3\n"
    async with Trial.of({**PLUS, "tests/test_m.py": tests}, tmp_path) as trial:
        for _ in range(2):
            results = await trial.test()
            assert {result.status for result in results.values()} == {Status.SURVIVED}
    said = "tests/test_m.py::test_red fails without any mutant, and is left out: assert 2 == 3"
    assert [str(notice) for notice in trial.notices] == [said, said]


IMPORT = "can't be imported"
FIX = "fix it, or select the tests with pytest_add_cli_args_test_selection in [tool.mutmut] of pyproject.toml"


async def test_a_module_that_cannot_be_imported_is_one_sentence_and_a_logged_traceback(tmp_path, caplog):
    caplog.set_level("INFO")
    files = {
        **PLUS,
        "pytest.ini": b"[pytest]\naddopts = --doctest-modules\n",  # which imports each file once more
        **dict.fromkeys(("tests/test_a.py", "tests/test_b.py", "tests/test_c.py"), b"from pkg.m import gone\n"),
    }
    async with Trial.of(files, tmp_path) as trial:
        with pytest.raises(BaselineError) as raised:
            await trial.test()
        assert raised.value.failing == ("tests/test_a.py", "tests/test_b.py", "tests/test_c.py")
        assert str(raised.value) == (
            f"tests/test_a.py {IMPORT}, nor can 2 others: ImportError: cannot import name 'gone' from 'pkg.m' "
            f"({trial.root / 'pkg/m.py'}): {FIX}"
        )
        assert "tests/test_a.py:1: in <module>" in caplog.text


BAD_SUITES = [  # in the main ring, the first five
    (
        b"def test_m():\n    assert 1 == 2\n",
        "every test fails without any mutant; tests/test_m.py::test_m: assert 1 == 2: fix it, or",
    ),
    (
        b"import nowhere\n",
        f"^tests/test_m.py {IMPORT}: ModuleNotFoundError: No module named 'nowhere': .* -m pip install nowhere \\(check first",
    ),
    (b"", "pytest finds no tests: select the tests with pytest_add_cli_args_test_selection"),
    (b"import os\n\ndef test_m():\n    os._exit(3)\n", "a test ends pytest itself"),
    (b"import os\nos._exit(3)\n", "pytest crashed while it collected"),
    (
        b"def test_m():\n    x = 'a\\nb'\n    assert x == 'c', 'no'\n",
        "tests/test_m.py::test_m: AssertionError: no: fix it, or",
    ),
    (b"def f(:\n", f"^tests/test_m.py {IMPORT}: SyntaxError: invalid syntax: {re.escape(FIX)}$"),
    (b"raise LookupError('a\\nb')\n", f"^tests/test_m.py {IMPORT}: LookupError: a: {re.escape(FIX)}$"),
]


async def test_a_suite_that_fails_since_an_edit_is_the_same_error(tmp_path):
    tests = b"from pkg.m import f\n\n\ndef test_f():\n    assert f(1) == 2\n"
    async with Trial.of({**PLUS, "tests/test_m.py": tests}, tmp_path) as trial:
        await trial.test()
        trial.edit("pkg/m.py", "a + 1", "a + gone")
        with pytest.raises(BaselineError, match=r"every test fails without any mutant; tests/test_m\.py::test_f"):
            await trial.test()


@pytest.mark.usefixtures("portable")
async def test_a_suite_that_says_nothing_of_mutants_is_one_clear_error(tmp_path, caplog, every_case):
    caplog.set_level("INFO")
    async with Trial.of({**PLUS, "tests/test_m.py": b""}, tmp_path) as trial:
        for test_file, message in BAD_SUITES[: None if every_case else 5]:
            caplog.clear()
            trial.write("tests/test_m.py", test_file.decode())
            with pytest.raises(ToolError, match=message) as raised:
                await trial.test()
            assert "\n" not in str(raised.value)
            assert str(trial.root) in caplog.text or "copy-0" not in caplog.text, "places are the user's own"
        trial.write("tests/test_m.py", "from pkg.m import f\n\ndef test_m():\n    assert f(1) == 2\n")
        assert {result.status for result in (await trial.test()).values()} == {Status.KILLED}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("E   AssertionError: x\nE   assert 1 == 2\nE    +  where 1 = f()", "AssertionError: x"),
        (">   f()\nE       AssertionError: x\nE       assert 1 == 2\nE        +  where 1 = f()", "AssertionError: x"),
        ("E   LookupError: a\nE   \nE   b", "LookupError: a"),
        ("E   KeyError: 'a'\nE   x\n\nDuring handling of it:\n\nE   ValueError: b\nE   c", "ValueError: b"),
        ('E     File "t.py", line 1\nE       def f(:\nE             ^\nE   SyntaxError: no', "SyntaxError: no"),
        ("file t.py, line 1\n  def test(nope):\nE       fixture 'nope' not found", "fixture 'nope' not found"),
        ("Traceback (most recent call last):\n  File 'a'\nKeyError: 1\nnote", "KeyError: 1"),
        ("assert 1 == 2\n +  where 1 = f()", "assert 1 == 2"),
        ("…rest of\n  the message", "the message"),
        ("", "no message"),
        ("E   \n  ", "no message"),
    ],
)
def test_the_gist_is_what_the_last_exception_says_first(text, line):
    assert gist(text) == line


@pytest.mark.parametrize(
    ("log", "line"),
    [
        ("ERROR: x\n\n", "ERROR: x"),
        ("error: x\n0 errors\nno errors", "error: x"),
        ("10 errors\nfine", "10 errors"),
        ("fine\n0 errors\n", "0 errors"),
        ("INTERNALERROR>     f()\nINTERNALERROR>     ~^^\nINTERNALERROR> Warn: a\nINTERNALERROR> error b\n", "Warn: a"),
        ("INTERNALERROR>     raise error\n", "INTERNALERROR>     raise error"),
        ("", "no message"),
        ("\n \n", "no message"),
    ],
)
def test_the_last_error_is_a_line_that_names_one(log, line):
    assert last_error(log) == line


async def test_a_broken_pytest_configuration_is_one_clear_error(tmp_path):
    wrong = TABLE + b'[tool.pytest.ini_options]\naddopts = "--no-such-option"\n'
    async with Trial.of({**PLUS, "pyproject.toml": wrong}, tmp_path) as trial:
        with pytest.raises(ToolError, match=r"^pytest can't start .*--no-such-option: fix it, or"):
            await trial.test()


async def test_what_keeps_a_process_with_the_projects_plugin_from_the_tests_is_named(tmp_path):
    wrong = b'debug = true\nprocess_isolation = "forkserver"\n[tool.pytest.ini_options]\naddopts = "-p pkg.m gone"\n'
    async with Trial.of({**PLUS, "pyproject.toml": TABLE + wrong}, tmp_path) as trial:
        with pytest.raises(ToolError, match=r"^pytest can't start .*not found: gone"):
            await trial.test()


async def test_code_that_comes_with_pytests_start_is_tested_from_its_import(tmp_path):
    files = {
        "pyproject.toml": TABLE + b'[tool.pytest.ini_options]\naddopts = "-p pkg.plugin"\n',
        "pkg/plugin.py": b"def f(a):\n    return a + 1\n\nVALUE = f(1)\n",
        "tests/test_m.py": b"from pkg.plugin import VALUE\n\ndef test_m():\n    assert VALUE == 2\n",
    }
    async with Trial.of(files, tmp_path) as trial:
        results = await trial.test()
        assert {(result.status, result.static) for result in results.values()} == {(Status.KILLED, True)}


@pytest.mark.parametrize(
    "options",
    [b"", b'process_isolation = "forkserver"\n', b'[tool.pytest.ini_options]\naddopts = "-p pkg.m"\n'],
    ids=["live", "fresh", "plain"],
)
async def test_a_test_has_as_many_frames_below_it_as_in_pytest(options, tmp_path):
    files = {
        **PLUS,
        "pyproject.toml": TABLE + options,
        "tests/test_m.py": b"import traceback\nfrom pkg.m import f\n\n"
        b"def test_m():\n    assert f(1) == 2, f'{len(traceback.extract_stack())} frames'\n",
    }
    async with Trial.of(files, tmp_path) as trial:
        [killed, *_] = (await trial.test()).values()
        copy = Path(shutil.copytree(trial.root, tmp_path / "copy"))
    (copy / "pkg/m.py").write_text("def f(a):\n    return a - 1\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    said = subprocess.run(command, cwd=copy, capture_output=True, text=True, check=False).stdout
    assert re.search(r"AssertionError: (\d+ frames)", said)[1] in killed.status_reason


async def test_threads_that_modules_start_at_import_survive(tmp_path):
    files = {
        "pyproject.toml": TABLE,
        "pkg/m.py": b"import queue, threading\n\ndef double(a):\n    return a * 2\n\n"
        b"asked, answers = queue.Queue(), queue.Queue()\n"
        b"def serve():\n    while True:\n        answers.put(double(asked.get()))\n\n"
        b"threading.Thread(target=serve, daemon=True).start()\n",
        "tests/test_m.py": b"from pkg.m import asked, answers\n\ndef test_m():\n    asked.put(3)\n"
        b"    assert answers.get(timeout=60) == 6\n",
    }
    async with Trial.of(files, tmp_path) as trial:
        results = await trial.test([m for m in await trial.discover() if "x_double" in m.description])
        assert {result.status for result in results.values()} == {Status.KILLED}
        assert all("6" in (result.status_reason or "") for result in results.values())
