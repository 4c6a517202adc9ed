"""Tests that read a source as text, or look for files, meet each edit of these, whatever code they run."""

import asyncio
import importlib
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import hypothesis.internal.conjecture.providers as hypothesis_providers
import pytest
from support.mutmut_trial import PACKAGE, Trial

from msp_bridge.adapter import Result, Status
from msp_bridge.python_engine.programs.text_reads import renew_constants
from msp_bridge.toolkit import JsonLinesProcess

SOURCE = "def one(x):\n    return x + 1\n\n\ndef two(x):\n    return x + 2\n"
EDITED = SOURCE.replace("x + 1", "x - 100")
TEST = f"""import inspect
import linecache
import os
import subprocess
from pathlib import Path
from pkg import core


def test_text():
    assert Path(core.__file__).read_text().count("+") == 2


def test_inspect():
    assert "+ 1" in inspect.getsource(core)


def test_lines():
    assert "+ 1" in linecache.getline(core.__file__, 2)


def test_grep():
    assert subprocess.run(["grep", "-q", "x + 1", "pkg/core.py"]).returncode == 0


def test_size():
    assert os.path.getsize(core.__file__) == {len(SOURCE)}


def test_two():
    assert core.two(1)


def test_files():
    assert len(list(Path(__file__).parent.glob("test_*.py"))) == 1


def test_names(monkeypatch):
    monkeypatch.chdir("tests")
    assert sum(name.startswith("test_") for name in os.listdir()) == 1
"""
FILES = {**PACKAGE, "pkg/core.py": SOURCE.encode(), "tests/test_core.py": TEST.encode()}
TWO = "pkg.core.x_two__mutmut_2"  # x + 3, which `test_two` does not kill


def left_out(trial: Trial) -> set[str]:
    """The tests that fail without a mutant, as the notices say."""
    found = [str(notice) for notice in trial.notices]
    return {
        name
        for name in ("text", "inspect", "lines", "grep", "files", "names", "size")
        if any(f"test_{name}" in each for each in found)
    }


def killers(results: Mapping[str, Result]) -> set[str]:
    return {killer for result in results.values() for killer in result.killed_by or ()}


async def test_one_that_fails_after_an_edit_kills_nothing(tmp_path: Path) -> None:
    """The size of a file is what nobody sees read: the suite without a mutant shows that test before it kills."""
    async with Trial.of(FILES, tmp_path) as trial:
        assert "tests/test_core.py::test_text" in killers(await trial.test())
        trial.write("pkg/core.py", EDITED)
        results = await trial.test()
        assert killers(results) == set()
        assert results[TWO].status is Status.SURVIVED
        assert left_out(trial) == {"text", "inspect", "lines", "grep"}


async def test_it_is_named_where_the_measurement_has_ended_before_anything_of_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A busy machine: what the tests are, and what they have been measured to be, is read at once."""
    async with Trial.of(FILES, tmp_path) as trial:
        await trial.test()
        trial.write("pkg/core.py", EDITED)
        saved, post = trial.copy.parent / "baseline.json", JsonLinesProcess.post
        before = saved.stat().st_mtime_ns

        def post_and_block(process: JsonLinesProcess, question: Mapping[str, Any]) -> tuple[int, asyncio.Future[Any]]:
            posted = post(process, question)
            while question["do"] == "prepare" and saved.stat().st_mtime_ns == before:
                time.sleep(0.01)
            return posted

        monkeypatch.setattr(JsonLinesProcess, "post", post_and_block)
        assert killers(await trial.test()) == set()
        assert left_out(trial) == {"text", "inspect", "lines", "grep"}


async def test_what_is_read_at_import_has_the_mutant(tmp_path: Path) -> None:
    test = "from pathlib import Path\nfrom pkg import core\n\nTEXT = Path(core.__file__).read_text()\n"
    test += "\n\ndef test_text():\n    assert '+ 2' in TEXT\n"
    async with Trial.of({**FILES, "tests/test_core.py": test.encode()}, tmp_path) as trial:
        assert killers({TWO: (await trial.test())[TWO]}) == {"tests/test_core.py::test_text"}


async def test_the_next_server_knows_that_too(tmp_path: Path) -> None:
    async with Trial.of(FILES, tmp_path) as trial:
        await trial.test()
        trial.write("pkg/core.py", EDITED)
        trial.write("tests/test_more.py", "def test_more():\n    pass\n")
    async with Trial.of({}, tmp_path) as trial:
        results = await trial.test()
        assert killers(results) == set()
        assert results[TWO].status is Status.SURVIVED
        assert left_out(trial) == {"text", "inspect", "lines", "grep", "size", "files", "names"}


async def test_one_that_lists_the_current_directory_fails_after_a_file_has_come(tmp_path: Path) -> None:
    """Where another one fails, too, all are run again."""
    test = TEST.replace('glob("test_*.py"))) == 1', 'glob("test_*.py"))) > 0')
    async with Trial.of({**FILES, "tests/test_core.py": test.encode()}, tmp_path) as trial:
        await trial.test()
        trial.write("tests/test_more.py", "def test_more():\n    pass\n")
        await trial.test()
        assert left_out(trial) == {"names"}


async def test_a_test_that_refuses_functions_for_paths_passes(tmp_path: Path) -> None:
    """Where an event loop runs, blockbuster does so: nothing that looks at what a test reads and starts calls them."""
    test = """import linecache
import os
import subprocess
from pkg import core


def refused(*_, **__):
    raise AssertionError("blocks")


def test_two(monkeypatch):
    with monkeypatch.context() as patched:
        for module, name in ((os.path, "abspath"), (os.path, "realpath"), (os, "lstat")):
            patched.setattr(module, name, refused)
        linecache.getlines(core.__file__)
        import colorsys
        open("pkg/core.py").close()
        assert os.listdir("pkg")
        assert subprocess.run(["/bin/echo", "pkg/core.py"], stdout=subprocess.DEVNULL).returncode == 0
    assert core.two(1) == 3
"""
    async with Trial.of({**FILES, "tests/test_core.py": test.encode()}, tmp_path) as trial:
        results = await trial.test()
        assert list(trial.notices) == []
        assert killers(results) == {"tests/test_core.py::test_two"}


async def test_that_hypothesis_reads_all_sources_for_constants_says_nothing_of_the_tests(tmp_path: Path) -> None:
    test = """import os
from hypothesis import given, strategies
from pkg import core

PROCESS = os.getpid()


@given(strategies.integers())
def test_one(x):
    assert core.one(x) == x + 1, "imported here" if os.getpid() == PROCESS else "imported before the fork"
"""
    settings = FILES["pyproject.toml"] + b'[tool.pytest.ini_options]\naddopts = "-p _hypothesis_pytestplugin"\n'
    tree = {**FILES, "pyproject.toml": settings, "tests/test_core.py": test.encode()}
    async with Trial.of(tree, tmp_path) as trial:
        results = await trial.test()
        reasons = {str(result.status_reason) for result in results.values() if result.status is Status.KILLED}
        assert reasons
        assert all("imported before the fork" in reason for reason in reasons), reasons


def test_hypothesis_has_the_constants_of_the_text_that_was_put_into_a_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)  # it keeps them below
    file = tmp_path / "module_with_constants.py"
    file.write_text("def f(x):\n    return x == 987654321\n")
    importlib.import_module(file.stem)
    assert 987654321 in hypothesis_providers._get_local_constants()
    file.write_text("def f(x):\n    return x == 123454321\n")
    assert 123454321 not in hypothesis_providers._get_local_constants()
    renew_constants(str(file))
    assert 123454321 in hypothesis_providers._get_local_constants()


FINDS = """import doctest
import inspect
import sys
from msp_bridge.python_engine.programs.text_reads import TextReads

sys.path.insert(0, DIRECTORY)
TextReads(DIRECTORY, note=print, hide=lambda: None).begin()
import core
assert len(doctest.DocTestFinder().find(core)) == 1
print("found")
inspect.getsource(core)
"""


def test_what_doctest_reads_to_say_where_an_example_stands_is_none(tmp_path: Path) -> None:
    """Else each mutant of a module with doctests would have a fresh process."""
    (tmp_path / "core.py").write_text('def one(x):\n    """>>> one(1)\n    2\n    """\n    return x + 1\n')
    run = [sys.executable, "-c", FINDS.replace("DIRECTORY", repr(str(tmp_path)))]
    assert subprocess.run(run, capture_output=True, text=True, check=True).stdout == "found\ncore.py\n"
