"""The engine on real projects: when it reloads, when it starts anew, and what it refuses."""

import asyncio

import psutil
import pytest
from support.environments import environment, repair
from support.mutmut_trial import Trial
from support.servers import until

from msp_bridge.adapter import RanAlone, Status, ToolError

TABLE = b'[tool.mutmut]\nsource_paths = ["pkg"]\ntimeout_multiplier = 3\n'
SOURCE = b"""LIMIT = 3


def at_import(a):
    return a + LIMIT


VALUE = at_import(1)


def first(a):
    return a + 1


def second(a):
    return first(a) * 2
"""
TESTS = b"""import unittest.mock

import pytest
from pkg.m import VALUE, first, second


def four():
    return 4


def test_value():
    assert VALUE in (four(), 5)


@unittest.mock.patch("os.sep", "/")
def test_patched():
    patched = True
    assert patched


class TestFirst:
    @pytest.mark.parametrize('a', [1])
    def test_again(self, a):
        assert a


def test_first():
    assert first(1) == 2


def test_second():
    assert second(1) == 4
"""
FILES = {"pyproject.toml": TABLE, "pkg/__init__.py": b"", "pkg/m.py": SOURCE, "tests/test_m.py": TESTS}


def how(caplog: pytest.LogCaptureFixture) -> list[str]:
    """How each preparation was made: started or reloaded."""
    lines = [record.getMessage() for record in caplog.records if "the tests are ready" in record.getMessage()]
    return ["reloaded" if "reloaded" in line else "started" for line in lines]


async def test_an_edit_of_a_body_is_reloaded_and_tested_as_it_is(tmp_path, caplog):
    """Failing tests are run without isolation, too; what that job has found is no state to return to."""
    caplog.set_level("INFO")
    failing = b"\n\ndef test_failing():\n    assert first(1) == 7\n"
    async with Trial.of({**FILES, "tests/test_m.py": TESTS + failing}, tmp_path) as trial:
        await trial.test()
        host = await trial.host()
        trial.edit("pkg/m.py", "    return a + 1\n", "    b = a\n    return b + 1\n")
        results = await trial.test()
        assert await trial.host() == host
        assert how(caplog) == ["started", "reloaded"]
        of_first = [result for name, result in results.items() if "x_first" in name]
        assert {result.status for result in of_first} == {Status.KILLED}
        assert {test for result in of_first for test in result.covered_by or ()} == {
            "tests/test_m.py::test_first",
            "tests/test_m.py::test_second",
        }
        of_second = [result for name, result in results.items() if "x_second" in name]
        assert {result.covered_by for result in of_second} == {("tests/test_m.py::test_second",)}
        trial.edit("pkg/m.py", "return b + 1", "return b + 2")
        statuses = {result.status for name, result in (await trial.test()).items() if "x_second" in name}
        assert statuses <= {Status.SURVIVED, Status.NO_COVERAGE}, "both tests that run it fail without a mutant"


UNUSED = b"""

def unused(lines):
    heads = [line.strip() for line in lines]
    by_name = {name: (lambda: name) for name in heads}
    return sorted(by_name, key=lambda name: by_name[name]())
"""


async def test_code_that_no_test_runs_has_no_coverage_whatever_functions_it_makes(tmp_path, caplog):
    """Python 3.11 makes a function for a comprehension, too, and a mutant may take it away."""
    caplog.set_level("INFO")
    async with Trial.of({**FILES, "pkg/m.py": SOURCE + UNUSED}, tmp_path) as trial:
        results = await trial.test()
        unused = {name: result for name, result in results.items() if "x_unused" in name}
        assert len(unused) >= 8
        assert {(result.status, result.static) for result in unused.values()} == {(Status.NO_COVERAGE, False)}
        trial.edit("pkg/m.py", "heads = [line.strip() for line in lines]", "heads = list(lines)")
        assert {result.status for result in (await trial.test()).values()} >= {Status.NO_COVERAGE, Status.KILLED}
        assert how(caplog) == ["started", "reloaded"]


LATE_TESTS = b"""def test_first():
    from pkg.m import first

    assert first(1) == 2


def test_second():
    from pkg.m import second

    assert second(1) == 4
"""


async def test_a_file_that_tests_import_has_covering_tests_and_its_edits_are_reloaded(tmp_path, caplog):
    caplog.set_level("INFO")
    async with Trial.of({**FILES, "tests/test_m.py": LATE_TESTS}, tmp_path) as trial:
        before = await trial.test()
        trial.edit("pkg/m.py", "    return a + 1\n", "    b = a\n    return b + 1\n")
        after = await trial.test()
    assert how(caplog) == ["started", "reloaded"]
    for results in (before, after):
        in_second = [result for name, result in results.items() if "x_second" in name]
        assert {result.covered_by for result in in_second} == {("tests/test_m.py::test_second",)}
        assert {result.status for result in in_second} == {Status.KILLED}
        at_import = [result for name, result in results.items() if "x_at_import" in name]
        assert {result.covered_by for result in at_import} == {("tests/test_m.py::test_first",)}


SLOW = b"""import time

from pkg.m import first, second


def test_first():
    time.sleep(0.5)
    assert first(1) == 2


def test_second():
    time.sleep(0.5)
    assert second(1) == 4
"""


async def test_a_request_that_knows_less_of_the_tests_leaves_no_other_without_an_answer(tmp_path):
    """The first waits until one test has run alone, and knows of the other; for the host nothing is known then."""

    async def known() -> RanAlone:
        return RanAlone((("pkg/m.py", "first"),), {"tests/test_m.py::test_second": frozenset([0])})

    async def nothing() -> RanAlone:
        return RanAlone()

    async with Trial.of({**FILES, "tests/test_m.py": SLOW}, tmp_path, incremental=True) as trial:
        mutants = await trial.discover()
        unasked = await trial.adapter.reach(mutants, nothing, alone=False)
        waiting = asyncio.create_task(trial.adapter.reach(mutants, known, alone=True))
        await asyncio.sleep(0.2)
        assert await trial.adapter.reach(mutants, nothing, alone=False) == unasked
        async with asyncio.timeout(60):
            assert await waiting == unasked
        assert trial.adapter.ran_alone().keys() == {"tests/test_m.py::test_first", "tests/test_m.py::test_second"}


NOTING = """from pkg.m import first, second


def test_first():
    assert first(1) == 2


class TestSecond:
    def test_second(self):
        with open({notes!r}, "a") as file:
            file.write("again ")
        assert second(1) == 4
"""


async def test_an_edit_of_a_test_is_reloaded_and_no_other_test_is_run_again(tmp_path, caplog, monkeypatch):
    def covering(results):
        found = [result for name, result in results.items() if "x_second" in name]
        return {(result.status, frozenset(result.covered_by)) for result in found}

    caplog.set_level("INFO")
    monkeypatch.setenv("MSP_BRIDGE_ISOLATION", "off")  # else the notes would be dropped
    notes = tmp_path / "notes"
    tests = NOTING.format(notes=str(notes)).encode()
    first, second = "tests/test_m.py::test_first", "tests/test_m.py::TestSecond::test_second"
    async with Trial.of({**FILES, "tests/test_m.py": tests}, tmp_path) as trial:
        assert covering(await trial.test()) == {(Status.KILLED, frozenset({second}))}
        host, before = await trial.host(), notes.read_text()
        trial.edit("tests/test_m.py", "    assert first(1) == 2", "    two = 2\n    assert second(two) == 6, two")
        assert (await trial.host(), notes.read_text()) == (host, before)
        assert covering(await trial.test()) == {(Status.KILLED, frozenset({first, second}))}
        trial.edit("tests/test_m.py", "        assert second(1) == 4", "        assert second(1)")
        trial.edit("tests/test_m.py", "    assert second(two) == 6, two", "    assert first(two) == 3, two")
        results = await trial.test()
        assert {status for status, _ in covering(results)} != {Status.KILLED}, "the tests see less than before"
        assert await trial.host() == host
        assert how(caplog) == ["started", "reloaded", "reloaded"]


async def test_what_ran_at_import_and_what_several_tests_may_run_needs_new_servers(tmp_path, caplog):
    caplog.set_level("INFO")
    async with Trial.of(FILES, tmp_path) as trial:
        await trial.host()
        for path, old, new in (
            ("pkg/m.py", "LIMIT = 3", "LIMIT = 4"),
            ("pkg/m.py", "return a + LIMIT", "return LIMIT + a"),
            ("pkg/m.py", "def second(a):", "def second(a, b=0):"),
            ("tests/test_m.py", "return 4", "return VALUE"),
            ("tests/test_m.py", "def test_value():", "def test_new():\n    pass\n\n\ndef test_value():"),
            ("tests/test_m.py", "@pytest.mark.parametrize('a', [1])", "@pytest.mark.parametrize('a', [2])"),
            ("tests/test_m.py", "    assert patched", "    assert not not patched"),
        ):
            caplog.clear()
            trial.edit(path, old, new)
            await trial.host()
            assert how(caplog) == ["started"], new


FINDER = """import importlib.util, sys

MAPPING = {{"pkg": {package!r}}}


class Finder:
    def find_spec(name, path=None, target=None):
        places = {{"pkg": MAPPING["pkg"] + "/__init__.py"}}
        return importlib.util.spec_from_file_location(name, places[name]) if name in places else None


sys.meta_path.append(Finder)
"""


INSTALL = "install the project editable"
WAYS = {  # in which the tests come to import another tree, and what leads them back
    "site-packages": INSTALL,
    "finder": INSTALL,  # as setuptools installs another checkout editable
    "PYTHONPATH": "PYTHONPATH",
    "pythonpath": "the setting `pythonpath` of pytest",
    "conftest.py": "conftest.py",
}


@pytest.mark.parametrize("way", WAYS)
async def test_a_copy_that_is_installed_elsewhere_is_refused_by_its_path(way, tmp_path, monkeypatch):
    """An editable install of this tree changes nothing for a directory that comes before it."""
    installed = tmp_path / "other"
    (installed / "pkg").mkdir(parents=True)
    (installed / "pkg/__init__.py").write_text("")
    (installed / "pkg/m.py").write_bytes(SOURCE)
    here = {path.replace("pkg/", "lib/pkg/"): content for path, content in FILES.items()}
    here["pyproject.toml"] = TABLE.replace(b'"pkg"', b'"lib"')
    files = {
        "site-packages": {"other.pth": f"{installed}\n"},
        "finder": {"other.pth": "import finder\n", "finder.py": FINDER.format(package=str(installed / "pkg"))},
    }
    python = environment(tmp_path / "environment", files.get(way))
    repair(python)
    if way == "PYTHONPATH":
        monkeypatch.setenv(way, str(installed))
    if way == "pythonpath":
        here["pyproject.toml"] += f'[tool.pytest.ini_options]\npythonpath = ["lib/none", "{installed}"]\n'.encode()
    if way == "conftest.py":
        here[way] = f"import sys\nsys.path.insert(0, {str(installed)!r})\n".encode()
    async with Trial.of(here, tmp_path, python=python) as trial:
        with pytest.raises(ToolError, match=r"tests import pkg.* from .*other/pkg/.*, not from this ") as raised:
            await trial.test()
    assert raised.value.remedy is not None
    assert {each for each in WAYS.values() if each in raised.value.remedy} == {WAYS[way]}


ORDERED = {
    "pyproject.toml": TABLE,
    "pkg/__init__.py": b"",
    "pkg/m.py": b"""SEEN = []


def remember(word):
    SEEN.append(word)
    return len(SEEN)


def last():
    return SEEN[-1] if SEEN else None
""",
    "tests/test_m.py": b"""from pkg import m


def test_remember():
    assert m.remember("a") == 1


def test_last():
    assert m.last() == "a"
""",
}


async def test_a_test_that_needs_another_is_not_run_before_it(tmp_path):
    """It has killed mutants of `last`, so it is likely to kill the next one; run first, it fails without a mutant too."""
    async with Trial.of(ORDERED, tmp_path) as trial:
        await trial.test()
        again = await trial.test()
        assert [name for name, result in again.items() if result.status is Status.SURVIVED] == [
            "pkg.m.x_last__mutmut_2"
        ]


HELD = """import time

from pkg.m import LIMIT, first


def test_first():
    with open({notes!r}, "a") as file:
        file.write(f"{{LIMIT}} ")
    while LIMIT == 4:
        time.sleep(0.01)
    assert first(1) == 2
"""


def hosts() -> list[psutil.Process]:
    below = psutil.Process().children(recursive=True)
    return [process for process in below if "host" in process.cmdline()]


def preparations() -> list[str]:
    return [task.get_name() for task in asyncio.all_tasks() if task.get_name().startswith("preparation")]


async def test_a_restart_begins_when_mutants_are_listed_and_not_when_their_verdicts_are_wanted(tmp_path, caplog):
    caplog.set_level("INFO")
    async with Trial.of(FILES, tmp_path) as trial:
        await trial.discover()
        assert preparations() == [], "who only lists mutants has no test run"
        await trial.test()
        trial.edit("pkg/m.py", "LIMIT = 3", "LIMIT = 4")
        mutants = await trial.discover()
        await until(lambda: len(how(caplog)) == 2)
        results = await trial.test(mutants)
        assert how(caplog) == ["started", "started"], "the request found everything prepared"
        assert {result.status for name, result in results.items() if "x_second" in name} == {Status.KILLED}


async def test_a_preparation_ends_with_a_further_edit_a_cancel_and_the_bridge(tmp_path, monkeypatch):
    """Its test notes the LIMIT that it sees, and never ends while that is 4."""
    monkeypatch.setenv("MSP_BRIDGE_ISOLATION", "off")  # else the notes would be dropped
    notes = tmp_path / "notes"

    async def being_prepared(before: str):
        notes.write_text("")
        trial.edit("pkg/m.py", before, "LIMIT = 4")
        mutants = await trial.discover()
        await until(lambda: notes.read_text().startswith("4 "))
        return mutants

    async with Trial.of({**FILES, "tests/test_m.py": HELD.format(notes=str(notes)).encode()}, tmp_path) as trial:
        await trial.test()
        await being_prepared("LIMIT = 3")
        trial.edit("pkg/m.py", "LIMIT = 4", "LIMIT = 5")
        results = await trial.test()
        assert notes.read_text().startswith("4 5 ")
        assert {result.status for name, result in results.items() if "x_first" in name} == {Status.KILLED}

        mutants = await being_prepared("LIMIT = 5")
        request = asyncio.create_task(trial.test(mutants))
        await until(lambda: trial.adapter._engine._running)
        request.cancel()
        await asyncio.wait([request])
        assert (request.cancelled(), hosts(), preparations()) == (True, [], [])

        trial.edit("pkg/m.py", "LIMIT = 4", "LIMIT = 6")
        await trial.test()
        await being_prepared("LIMIT = 6")
    assert (hosts(), preparations()) == ([], [])


PLUGIN = """import threading, time

with open({notes!r}, "a") as file:
    file.write("imported ")
{more}
"""


async def imports_of_a_plugin(tmp_path, monkeypatch, more: str = "") -> tuple[int, str]:
    """How often a plug-in of pytest is imported until the mutants have their verdicts, and what is told meanwhile."""
    notes = tmp_path / "notes"
    (tmp_path / "installed").mkdir()
    (tmp_path / "installed/noting.py").write_text(PLUGIN.format(notes=str(notes), more=more))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "installed"))
    table = TABLE + b'pytest_add_cli_args = ["-p", "noting"]\n'
    async with Trial.of({**FILES, "pyproject.toml": table}, tmp_path) as trial:
        results = await trial.test()
        assert {result.status for name, result in results.items() if "x_second" in name} == {Status.KILLED}
    return notes.read_text().split().count("imported"), "\n".join(map(str, trial.notices))


async def test_pytest_and_its_plugins_are_imported_once_for_both_servers(tmp_path, monkeypatch):
    assert await imports_of_a_plugin(tmp_path, monkeypatch) == (1, "")


async def test_the_threads_of_a_plugin_are_never_lost_in_a_fork_that_runs_on(tmp_path, monkeypatch):
    more = "threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()"
    count, told = await imports_of_a_plugin(tmp_path, monkeypatch, more)
    assert count == 2
    assert "starts threads when it is imported" in told
