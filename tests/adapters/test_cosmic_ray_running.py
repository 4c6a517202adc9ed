"""Running: cosmic-ray's own statuses, from private copies that are what the tests import."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.cosmic_ray_trees import adapter_on, contents, copied, cosmic_ray, discovered, results_of, rows

from msp_bridge.adapter import ConfigurationError, Result, Status, ToolError

SURVIVED, KILLED = Status.SURVIVED, Status.KILLED


def plain(root: Path, body: str, tests: str, *, timeout: float = 20, command: str = "python tests.py") -> Path:
    """A project with one module `m.py`, tested by a script."""
    root.mkdir()
    (root / "m.py").write_text(body)
    (root / "tests.py").write_text(tests)
    (root / "cosmic-ray.toml").write_text(
        f'[cosmic-ray]\nmodule-path = "m.py"\ntimeout = {timeout}\ntest-command = {json.dumps(command)}\n'
    )
    return root


def environment(tmp_path: Path, *imported: Path) -> str:
    """An interpreter that imports what ours does, and from `imported`, as with editable installs."""
    home = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", home], check=True)
    (packages,) = home.glob("lib/*/site-packages")
    ours = [entry for entry in sys.path if entry.endswith("site-packages")]
    (packages / "editable.pth").write_text("\n".join([*ours, *map(str, imported)]))
    return str(home / "bin/python")


async def test_the_statuses_are_those_of_exec_and_the_tree_is_untouched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # it starts twice as fast
    root = copied("cr_flat", tmp_path)
    before = contents(root)
    async with adapter_on(root, jobs=2) as adapter:
        mutants = await discovered(adapter)
        results = await results_of(adapter, mutants)
    assert contents(root) == before
    assert len(results) == len(mutants) == len({result.mutant for result in results})
    cosmic_ray(root, "cosmic_ray.cli", "init", "cosmic-ray.toml", "session.sqlite")
    cosmic_ray(root, "cosmic_ray.tools.filters.operators_filter", "session.sqlite", "cosmic-ray.toml")
    cosmic_ray(root, "cosmic_ray.tools.filters.pragma_no_mutate", "session.sqlite")
    cosmic_ray(root, "cosmic_ray.cli", "exec", "cosmic-ray.toml", "session.sqlite")
    query = (
        "select operator_name, occurrence, worker_outcome, test_outcome, output"
        " from mutation_specs join work_results using (job_id)"
    )
    theirs = {(name, occurrence): expected(*outcome) for name, occurrence, *outcome in rows(root, query)}
    ours = {(json.loads(r.mutant.handle)[0], json.loads(r.mutant.handle)[2]): r.status for r in results}
    assert ours == theirs
    assert {Status.KILLED, Status.SURVIVED, Status.TIMEOUT, Status.IGNORED} <= set(ours.values())
    say_what_the_tests_said(results)


def expected(worker: object, test: object, output: object) -> Status:
    if worker == "SKIPPED":
        return Status.IGNORED
    return Status.TIMEOUT if output == "timeout" else {"KILLED": KILLED, "SURVIVED": SURVIVED}[str(test)]


def say_what_the_tests_said(results: list[Result]) -> None:
    for result in results:
        if result.status in (KILLED, SURVIVED):
            assert result.duration is not None
            assert result.duration > 0
            assert result.tests_completed == 3
        if result.status is KILLED:
            assert result.killed_by
            assert all(name.startswith("tests/test_core.py::test_") for name in result.killed_by)
            assert str(result.status_reason).startswith(f"{result.killed_by[0]}: ")
    assert any(str(result.status_reason).endswith("where -1 = countdown(3)") for result in results)


async def test_an_editable_src_layout_is_tested_in_the_copy(tmp_path: Path) -> None:
    root = copied("cr_src", tmp_path)
    python = environment(tmp_path, root / "src")
    async with adapter_on(root, python=python) as adapter:
        results = await results_of(adapter, await discovered(adapter))
    assert {result.status for result in results} == {KILLED}
    assert "FAIL: test_double" in str(results[0].status_reason) or "Error" in str(results[0].status_reason)


async def test_tests_that_import_from_the_users_tree_are_refused(tmp_path: Path) -> None:
    root = plain(tmp_path / "project", "x = 1\n", "import sys; sys.path.insert(0, %r)\nimport m; assert m.x == 1\n")
    (root / "tests.py").write_text((root / "tests.py").read_text() % str(root))
    async with adapter_on(root) as adapter:
        with pytest.raises(ToolError, match="although every module of `module-path` is broken"):
            await results_of(adapter, await discovered(adapter))


async def test_the_module_that_comes_from_the_users_tree_is_named_where_pytest_runs(tmp_path: Path) -> None:
    tests = f"import sys; sys.path.insert(0, {str(tmp_path / 'project')!r})\nimport m\ndef test(): assert m.x == 1\n"
    command = "python -m pytest -q -p no:cacheprovider tests.py"
    root = plain(tmp_path / "project", "x = 1\n", tests, command=command)
    async with adapter_on(root) as adapter:
        with pytest.raises(ToolError, match=r"the tests import .*project/m\.py from your tree"):
            await results_of(adapter, await discovered(adapter))


async def test_tests_that_fail_without_a_mutant_end_in_an_error_that_names_them(tmp_path: Path) -> None:
    root = copied("cr_flat", tmp_path)
    (root / "tests/test_red.py").write_text("def test_red():\n    assert 1 == 2, 'it is red'\n")
    async with adapter_on(root) as adapter:
        mutants = await discovered(adapter)
        one = [mutant for mutant in mutants if mutant.mutator == "AddNot"][:1]
        with pytest.raises(ToolError, match=r"without any mutant.*test_red.py::test_red: AssertionError: it is red"):
            await results_of(adapter, one)
        (root / "tests/test_red.py").unlink()
        assert len(await results_of(adapter, one)) == 1


@pytest.mark.parametrize(
    ("path", "text", "why"),
    [
        ("tests/test_more.py", "import nothere\n", "ModuleNotFoundError: No module named 'nothere'"),
        ("tests/test_more.py", "x = 1\ndef (\n", "SyntaxError: invalid syntax (test_more.py, line 2)"),
    ],
)
async def test_a_module_that_cannot_be_imported_is_told_in_one_line(
    path: str, text: str, why: str, tmp_path: Path
) -> None:
    root = copied("cr_flat", tmp_path)
    (root / path).write_text(text)
    async with adapter_on(root) as adapter:
        mutants = await discovered(adapter)
        with pytest.raises(ToolError) as caught:
            await results_of(adapter, mutants)
    assert str(caught.value).endswith(f"in a private copy): {path}: {why}")


async def test_a_broken_configuration_is_told_to_who_names_a_file(tmp_path: Path) -> None:
    root = copied("cr_flat", tmp_path)
    (root / "cosmic-ray.toml").write_text("[cosmic-ray]\nmodule-path = = 1\n")
    async with adapter_on(root) as adapter:
        assert adapter.claims("calc/core.py")
        with pytest.raises(ConfigurationError, match=r"cosmic-ray\.toml"):
            await discovered(adapter, "calc/core.py")


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        ("no-such-program --fast", "`no-such-program --fast` can't be run"),
        ("python -m pytest -q nowhere.py", "fail without any mutant.*nowhere.py"),
        ("python -m pytest -q m.py", r"pytest found no tests \(exit code 5\)"),
        ("python -c 'import time; time.sleep(60)'", "without any mutant, but `timeout` is 0.5"),
        ("python -c pass", "although every module"),
    ],
)
async def test_a_test_command_that_is_no_good_is_told(tmp_path: Path, command: str, complaint: str) -> None:
    timeout = 0.5 if "sleep" in command else 20
    root = plain(tmp_path / "project", "x = 1\n", "", command=command, timeout=timeout)
    async with adapter_on(root) as adapter:
        mutants = await discovered(adapter)
        with pytest.raises(ToolError, match=complaint):
            await results_of(adapter, mutants)


async def test_pytest_that_ignores_pythonpath_runs_without_the_plugin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    tests = "import os, sys; sys.path.insert(0, os.getcwd())\nimport m\ndef test(): assert m.x == 1\n"
    command = "python -I -m pytest -q -p no:cacheprovider tests.py"
    root = plain(tmp_path / "project", "x = 1\n", tests, command=command)
    async with adapter_on(root) as adapter:
        results = await results_of(adapter, await discovered(adapter))
    assert {(result.status, result.killed_by) for result in results} == {(KILLED, None)}


async def test_a_file_in_latin_1_stays_in_latin_1(tmp_path: Path) -> None:
    root = plain(tmp_path / "project", "", "import m; assert m.word == 'caf\\xe9' and len(m.word) == 4\n")
    (root / "m.py").write_bytes("# coding: latin-1\r\nword = 'café'\r\nunused = 1\r\n".encode("latin-1"))
    before = contents(root)
    async with adapter_on(root) as adapter:
        results = await results_of(adapter, await discovered(adapter))
    assert {result.status for result in results} == {SURVIVED}
    assert contents(root) == before


async def test_output_that_is_no_utf_8_is_what_it_is_to_cosmic_ray(tmp_path: Path) -> None:
    tests = "import m, os\nif m.x != 1: os.write(1, b'\\xff'); raise SystemExit(1)\n"
    root = plain(tmp_path / "project", "x = 1\n", tests)
    async with adapter_on(root) as adapter:
        results = await results_of(adapter, await discovered(adapter))
    assert {(r.status, r.status_reason) for r in results} == {
        (Status.RUNTIME_ERROR, "the output of the tests is no UTF-8")
    }


async def test_mutants_of_one_size_and_second_are_not_mixed_up_by_bytecode(tmp_path: Path) -> None:
    """The tests start a Python that may write bytecode, whatever we forbid."""
    again = (
        "import subprocess, sys\n"
        "code = 'import sys; sys.path.insert(0, \".\"); import m; sys.exit(m.x != 4)'\n"
        "sys.exit(subprocess.run([sys.executable, '-c', code], env={}).returncode)\n"
    )
    root = plain(tmp_path / "project", "x = 2 + 2\n", again)
    os.utime(root / "m.py", (1_600_000_000, 1_600_000_000))
    async with adapter_on(root) as adapter:
        mutants = [m for m in await discovered(adapter) if m.mutator.startswith("BinaryOperator")]
        results = await results_of(adapter, mutants * 2)
    equal_four = {"*", "**"}
    for result in results:
        assert result.status is (SURVIVED if result.mutant.replacement in equal_four else KILLED), result.mutant


async def test_an_edit_between_requests_is_tested_as_it_is_now(tmp_path: Path) -> None:
    root = plain(tmp_path / "project", "x = 1\ny = 2\n", "import m; assert m.x == 1\n")
    async with adapter_on(root) as adapter:
        before = await discovered(adapter)
        assert {r.status for r in await results_of(adapter, before) if r.mutant.location.start.line == 2} == {SURVIVED}
        (root / "tests.py").write_text("import m; assert m.y == 2\n")
        swapped = {r.mutant.location.start.line: r.status for r in await results_of(adapter, before)}
        assert swapped == {1: SURVIVED, 2: KILLED}
        (root / "m.py").write_text("x = 7\ny = 2\n")
        remaining = await results_of(adapter, before)
        assert {result.mutant.location.start.line for result in remaining} == {2}
        (root / "m.py").unlink()
        (root / "m.py").write_text("")
        assert await results_of(adapter, before) == []


async def test_an_edit_while_mutants_run_never_gives_a_result_of_the_wrong_file(tmp_path: Path) -> None:
    root = plain(tmp_path / "project", "x = 1\ny = 2\n", "import m; assert m.x == 1\n")
    async with adapter_on(root) as adapter:
        mutants = await discovered(adapter)
        async with contextlib.aclosing(adapter.test(mutants)) as running:
            first = await anext(running)
            (root / "m.py").write_text("x = 1\ny = 3\n")
            rest = [result async for result in running]
        assert {result.status for result in [first, *rest] if result.mutant.location.start.line == 1} == {KILLED}
        again = await results_of(adapter, mutants)
        assert {result.mutant.location.start.line for result in again} == {1}


async def test_what_a_mutant_did_to_its_copy_is_undone_for_the_next_request(tmp_path: Path) -> None:
    tests = (
        "import m, os, pathlib\n"
        "pathlib.Path('data').write_text(str(m.x))\n"
        "assert pathlib.Path('kept').read_text() == ''\n"
        "if m.x != 1: os.unlink('kept')\n"
    )
    root = plain(tmp_path / "project", "x = 1\n", tests)
    (root / "kept").write_text("")
    async with adapter_on(root) as adapter:
        mutants = await discovered(adapter)
        for _ in range(2):
            (first,) = await results_of(adapter, mutants[:1])
            assert first.status is SURVIVED
    assert not (root / "data").exists()


async def test_a_program_in_the_projects_environment_is_called_where_it_is(tmp_path: Path) -> None:
    root = plain(tmp_path / "project", "x = 1\n", "import m; assert m.x == 1\n", command="venv/bin/python tests.py")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", root / "venv"], check=True)
    before = contents(root)
    async with adapter_on(root) as adapter:
        assert {result.status for result in await results_of(adapter, await discovered(adapter))} == {KILLED}
    assert contents(root) == before
