"""Running: cosmic-ray's own statuses, by the Python engine and by a test command, from what is in the sandbox."""

import contextlib
import json
import logging
import os
from pathlib import Path

import pytest
from support.adapters import discovered, results_of
from support.cosmic_ray_trees import adapter_on, cosmic_ray, plain, rows
from support.environments import environment, repair
from support.projects import copied
from support.servers import until

from msp_bridge.adapter import BaselineError, ConfigurationError, Notice, Result, Status, ToolError
from msp_bridge.notices import Remark
from msp_bridge.toolkit import Isolation
from msp_bridge.toolkit.command_proof import NO_KILLERS

SURVIVED, KILLED = Status.SURVIVED, Status.KILLED
PYTEST = "python -m pytest -q -p no:cacheprovider"  # run by the engine
WAITS = '__import__("time").sleep(float("1e-3"))'  # in a loop: a mutant that never ends needs no CPU time
AS_COMMAND = "python -X utf8 -m pytest -q -p no:cacheprovider"  # run as it is, for the sake of the option


def with_command(root: Path, command: str) -> Path:
    """The project cr_flat, tested by another command."""
    file = root / "cosmic-ray.toml"
    assert PYTEST in file.read_text()
    file.write_text(file.read_text().replace(PYTEST, command))
    return root


async def all_results(root: Path) -> list[Result]:
    """One for each mutant; the tree is as before."""
    async with adapter_on(root, jobs=2) as adapter:
        mutants = await discovered(adapter)
        results = await results_of(adapter, mutants)
    assert len(results) == len(mutants) == len({result.mutant for result in results})
    return results


async def test_a_restart_begins_when_mutants_are_listed_after_an_edit(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def prepared() -> int:
        return sum("the tests are ready" in record.getMessage() for record in caplog.records)

    caplog.set_level(logging.INFO)
    tests = "from m import LIMIT\n\n\ndef test_limit():\n    assert LIMIT > 2\n"
    root = plain(tmp_path / "root", "LIMIT = 1 + 2\n", tests, command=f"{PYTEST} tests.py")
    async with adapter_on(root, edited=True) as adapter:
        await results_of(adapter, (await discovered(adapter))[:1])
        (root / "m.py").write_text("LIMIT = 1 + 3\n")
        mutants = await discovered(adapter)
        await until(lambda: prepared() == 2)
        (result,) = await results_of(adapter, mutants[:1])
        assert prepared() == 2, "the request found everything prepared"
        assert result.mutant == mutants[0]


async def test_the_statuses_are_those_of_exec_by_the_engine_and_by_a_command(tmp_path: Path) -> None:
    root = copied("cr_flat", tmp_path)
    core = root / "calc" / "core.py"
    core.write_text(core.read_text().replace("        n = n - 1\n", f"        n = n - 1\n        {WAITS}\n"))
    by_engine = await all_results(root)
    by_command = await all_results(with_command(root, AS_COMMAND))
    cosmic_ray(root, "cosmic_ray.cli", "init", "cosmic-ray.toml", "session.sqlite")
    cosmic_ray(root, "cosmic_ray.tools.filters.operators_filter", "session.sqlite", "cosmic-ray.toml")
    cosmic_ray(root, "cosmic_ray.tools.filters.pragma_no_mutate", "session.sqlite")
    cosmic_ray(root, "cosmic_ray.cli", "exec", "cosmic-ray.toml", "session.sqlite")
    query = (
        "select operator_name, occurrence, worker_outcome, test_outcome, output"
        " from mutation_specs join work_results using (job_id)"
    )
    theirs = {(name, occurrence): expected(*outcome) for name, occurrence, *outcome in rows(root, query)}
    assert statuses(by_command) == theirs
    seen = {key: SURVIVED if status is Status.NO_COVERAGE else status for key, status in statuses(by_engine).items()}
    assert seen == theirs
    assert {Status.KILLED, Status.SURVIVED, Status.TIMEOUT, Status.IGNORED} <= set(theirs.values())
    no_coverage = [result for result in by_engine if result.status is Status.NO_COVERAGE]
    assert {str(result.mutant.description).rpartition(" in ")[2] for result in no_coverage} == {"untested"}
    check_what_the_tests_said(by_command)
    check_what_the_tests_said(by_engine)
    assert {result.tests_completed for result in by_command if result.status in (KILLED, SURVIVED)} == {3}


def statuses(results: list[Result]) -> dict[tuple[object, object], Status]:
    return {(result.mutant.handle.operator, result.mutant.handle.occurrence): result.status for result in results}


def expected(worker: object, test: object, output: object) -> Status:
    if worker == "SKIPPED":
        return Status.IGNORED
    return Status.TIMEOUT if output == "timeout" else {"KILLED": KILLED, "SURVIVED": SURVIVED}[str(test)]


def check_what_the_tests_said(results: list[Result]) -> None:
    for result in results:
        if result.status in (KILLED, SURVIVED):
            assert result.duration is not None
            assert result.duration > 0
            assert result.tests_completed
        if result.status is KILLED:
            assert result.killed_by
            assert all(name.startswith("tests/test_core.py::test_") for name in result.killed_by)
            assert result.status_reason
    assert any(str(result.status_reason).endswith("where -1 = countdown(3)") for result in results)


async def test_an_editable_src_layout_is_tested_in_the_copy(tmp_path: Path) -> None:
    root = copied("cr_src", tmp_path)
    python = environment(tmp_path / "venv", {"editable.pth": f"{root / 'src'}\n"})
    repair(python)
    async with adapter_on(root, python=python) as adapter:
        results = await results_of(adapter, (await discovered(adapter))[:2])
    assert {result.status for result in results} == {KILLED}
    assert "FAIL: test_double" in str(results[0].status_reason) or "Error" in str(results[0].status_reason)


def importing_from_the_users_tree(tmp_path: Path, test: str, command: str) -> Path:
    root = tmp_path / "project"
    return plain(root, "x = 1\n", f"import sys; sys.path.insert(0, {str(root)!r})\nimport m\n{test}\n", command=command)


@pytest.mark.parametrize(
    ("test", "command", "complaint"),
    [
        ("assert m.x == 1", "python tests.py", "although every module of `module-path` is broken"),
        ("def test(): assert m.x == 1", f"{AS_COMMAND} tests.py", r"the tests import .*project/m\.py from your tree"),
    ],
    ids=["a script", "pytest"],
)
async def test_tests_that_import_from_the_users_tree_are_refused_where_nothing_is_isolated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, test: str, command: str, complaint: str
) -> None:
    monkeypatch.setenv("MSP_BRIDGE_ISOLATION", "off")
    root = importing_from_the_users_tree(tmp_path, test, command)
    async with adapter_on(root, edited=True) as adapter:
        with pytest.raises(ToolError, match=complaint):
            await results_of(adapter, await discovered(adapter))


async def test_isolated_tests_that_import_by_the_users_path_test_the_copy(lasting: Path) -> None:
    isolation = Isolation.of("a tool", lasting, network=False)
    await isolation.probe()
    if not isolation.is_on:
        pytest.skip(f"this machine permits no isolation: {isolation.description}")
    root = importing_from_the_users_tree(lasting, "assert m.x == 1", "python tests.py")
    assert {result.status for result in await all_results(root)} == {KILLED}


@pytest.mark.usefixtures("portable")
async def test_tests_that_fail_without_a_mutant_end_in_an_error_that_names_them(tmp_path: Path) -> None:
    root = with_command(copied("cr_flat", tmp_path), AS_COMMAND)
    (root / "tests/test_red.py").write_text("def test_red():\n    assert 1 == 2, 'it is red'\n")
    async with adapter_on(root, edited=True) as adapter:
        mutants = await discovered(adapter)
        one = [mutant for mutant in mutants if mutant.mutator.startswith("AddNot")][:1]
        with pytest.raises(BaselineError) as caught:
            await results_of(adapter, one)
        (root / "tests/test_red.py").unlink()
        assert len(await results_of(adapter, one)) == 1
    name, message = "tests/test_red.py::test_red", "AssertionError: it is red\nassert 1 == 2"
    assert caught.value.problem == f"the tests fail without any mutant: {name}: {message}"
    assert caught.value.remedy == f"fix them first, they are run by `{AS_COMMAND} tests`"
    assert (caught.value.failing, caught.value.first_failure) == ((name,), message)


@pytest.mark.parametrize(
    ("command", "text", "why"),
    [
        (PYTEST, "import nothere\n", "ModuleNotFoundError: No module named 'nothere'"),
        (AS_COMMAND, "x = 1\ndef (\n", "SyntaxError: invalid syntax"),
    ],
    ids=["engine", "command"],
)
async def test_a_module_that_cannot_be_imported_is_named_in_one_line(
    command: str, text: str, why: str, tmp_path: Path
) -> None:
    root = with_command(copied("cr_flat", tmp_path), command)
    (root / "tests/test_more.py").write_text(text)
    async with adapter_on(root) as adapter:
        mutants = await discovered(adapter)
        with pytest.raises(BaselineError) as caught:
            await results_of(adapter, mutants)
    assert "tests/test_more.py" in caught.value.problem
    assert why in caught.value.problem.splitlines()[-1]
    assert caught.value.failing == ("tests/test_more.py",)


async def test_a_broken_configuration_is_an_error_for_a_named_file(tmp_path: Path) -> None:
    root = copied("cr_flat", tmp_path)
    (root / "cosmic-ray.toml").write_text("[cosmic-ray]\nmodule-path = = 1\n")
    async with adapter_on(root) as adapter:
        assert adapter.claims("calc/core.py")
        with pytest.raises(ConfigurationError, match=r"cosmic-ray\.toml"):
            await discovered(adapter, "calc/core.py")


TEST_NOTHING = {
    "no-such-program --fast": "can't run no-such-program: there is no such program",
    f"{PYTEST} nowhere.py": r"pytest can't start \(exit code 4\).*nowhere.py.*`test-command`",
    f"{PYTEST} m.py": "pytest finds no tests: select other tests by `test-command`",
    f"{AS_COMMAND} nowhere.py": "(?s)fail without any mutant.*nowhere.py",
    f"{AS_COMMAND} m.py": r"pytest found no tests \(exit code 5\)",
    "python -c 'import time; time.sleep(60)'": "without any mutant, but `timeout` is 5",
    "python -c pass": "although every module",
}


@pytest.mark.usefixtures("portable")
async def test_a_test_command_that_tests_nothing_is_an_error(tmp_path: Path) -> None:
    root = plain(tmp_path / "project", "x = 1\n", "", timeout=5)
    text = (root / "cosmic-ray.toml").read_text()
    async with adapter_on(root, edited=True) as adapter:
        mutants = await discovered(adapter)
        for command, complaint in TEST_NOTHING.items():
            (root / "cosmic-ray.toml").write_text(text.replace('"python tests.py"', json.dumps(command)))
            with pytest.raises(ToolError, match=complaint):
                await results_of(adapter, mutants)


async def test_pytest_that_ignores_pythonpath_runs_without_the_plugin(tmp_path: Path) -> None:
    tests = "import os, sys; sys.path.insert(0, os.getcwd())\nimport m\ndef test(): assert m.x == 1\n"
    command = "python -I -m pytest -q -p no:cacheprovider tests.py"
    root = plain(tmp_path / "project", "x = 1\n", tests, command=command)
    async with adapter_on(root) as adapter:
        for _ in range(2):
            async with contextlib.aclosing(adapter.test((await discovered(adapter))[:1])) as items:
                found = [item async for item in items]
            results = [item for item in found if isinstance(item, Result)]
            assert {(result.status, result.killed_by) for result in results} == {(KILLED, None)}
            assert [item for item in found if isinstance(item, Notice)] == [Remark(NO_KILLERS)]  # once in each request


async def test_a_file_in_latin_1_stays_in_latin_1(tmp_path: Path) -> None:
    root = plain(tmp_path / "project", "", "import m; assert m.word == 'caf\\xe9' and len(m.word) == 4\n")
    (root / "m.py").write_bytes("# coding: latin-1\r\nword = 'café'\r\nunused = 1\r\n".encode("latin-1"))
    async with adapter_on(root) as adapter:
        results = await results_of(adapter, await discovered(adapter))
    assert {result.status for result in results} == {SURVIVED}


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
        mutants = [mutant for mutant in await discovered(adapter) if mutant.replacement in ("-", "*", "//", "**")]
        results = await results_of(adapter, mutants * 2)
    assert len(mutants) == 4
    equal_four = {"*", "**"}
    for result in results:
        assert result.status is (SURVIVED if result.mutant.replacement in equal_four else KILLED), result.mutant


async def test_an_edit_between_requests_is_tested_as_it_is_now(tmp_path: Path) -> None:
    root = plain(tmp_path / "project", "x = 1\ny = 2\n", "import m; assert m.x == 1\n")
    async with adapter_on(root, edited=True) as adapter:
        before = await discovered(adapter)
        assert {r.status for r in await results_of(adapter, before) if r.mutant.location.start.line == 2} == {SURVIVED}
        (root / "tests.py").write_text("import m; assert m.y == 2\n")
        swapped = {r.mutant.location.start.line: r.status for r in await results_of(adapter, before)}
        assert swapped == {1: SURVIVED, 2: KILLED}
        (root / "m.py").write_text("x = 7\ny = 2\n")
        assert await results_of(adapter, before) == []
        edited = {r.mutant.location.start.line: r.status for r in await results_of(adapter, await discovered(adapter))}
        assert edited == {1: SURVIVED, 2: KILLED}
        (root / "m.py").unlink()
        (root / "m.py").write_text("")
        assert await results_of(adapter, before) == []


async def test_an_edit_while_mutants_run_never_gives_a_result_of_the_wrong_file(tmp_path: Path) -> None:
    root = plain(tmp_path / "project", "x = 1\ny = 2\n", "import m; assert m.x == 1\n")
    async with adapter_on(root, edited=True) as adapter:
        mutants = await discovered(adapter)
        async with contextlib.aclosing(adapter.test(mutants)) as running:
            first = await anext(running)
            (root / "m.py").write_text("x = 1\ny = 3\n")
            rest = [result async for result in running]
        assert {result.status for result in [first, *rest] if result.mutant.location.start.line == 1} == {KILLED}
        assert await results_of(adapter, mutants) == []
        again = await results_of(adapter, await discovered(adapter))
    assert {(result.mutant.location.start.line, result.status) for result in again} == {(1, KILLED), (2, SURVIVED)}


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
    environment(root / "venv")
    async with adapter_on(root) as adapter:
        assert {result.status for result in await results_of(adapter, await discovered(adapter))} == {KILLED}
