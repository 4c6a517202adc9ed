"""The oracle says what a fresh process says, and finds results that differ."""

import sys
from pathlib import Path

import pytest
from attrs import evolve
from support.files import written

from msp_bridge.adapter import BaselineError, Mutant, Result, Status
from msp_bridge.isolation import namespaces
from msp_bridge.source import SourceText
from msp_bridge.testing import Difference, Oracle, pytest_command
from msp_bridge.testing.conformance import TreeState

CALC = "def add(a, b):\n    return a + b\n\n\ndef unused():\n    return 'ä😀' + 1\n"
TESTS = """
import calc

def test_add():
    assert calc.add(1, 2) == 3
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    written(tmp_path / "project", {"calc.py": CALC, "test_calc.py": TESTS})
    return tmp_path / "project"


@pytest.fixture(params=["mounted", "beside"])
def isolated(request: pytest.FixtureRequest) -> bool:
    if request.param == "mounted" and "mount" in (refused := namespaces.probe()[1]):
        pytest.skip(f"this machine permits no namespaces: {refused['mount']}")
    return bool(request.param == "mounted")


def mutant(root: Path, file: str, old: str, new: str) -> Mutant:
    source = SourceText.read(root / file)
    at = source.text.index(old)
    return Mutant(file, "test", source.location(at, at + len(old)), new)


async def check_verdicts(root: Path, isolated: bool, *wanted: tuple[str, str, Status, str]) -> None:
    """What is replaced by what, and the verdict, of one oracle."""
    oracle = await Oracle.of(root, pytest_command(sys.executable), isolated=isolated)
    assert (oracle.world is not None) == isolated
    before = TreeState.of(root)
    for old, new, *verdict in wanted:
        hurried = evolve(oracle, timeout_s=5) if "sleep" in new else oracle
        file = "calc.py" if old in CALC else "conftest.py"
        found = await hurried.verdict_of(mutant(root, file, old, new))
        assert [found.status, found.reason] == verdict, new
        assert TreeState.of(root) == before


async def test_a_mutant_has_the_verdict_of_its_tests(root: Path, isolated: bool) -> None:
    await check_verdicts(
        root,
        isolated,
        ("a + b", "a - b", Status.KILLED, "a test failed"),
        ("'ä😀' + 1", "None", Status.SURVIVED, "the tests pass"),
        ("return a + b", "return (", Status.KILLED, "a test module can't be collected"),
        ("return a + b", "__import__('time').sleep(600)", Status.TIMEOUT, "no answer in 5 s"),
        ("return a + b", "__import__('os')._exit(3)", Status.KILLED, "pytest or one of its plug-ins broke"),
        ("return a + b", "__import__('os').abort()", Status.KILLED, "killed by SIGABRT"),
    )


async def test_a_conftest_that_breaks_and_no_tests_left_are_kills(root: Path, isolated: bool) -> None:
    written(root, {"conftest.py": "import calc\nvalue = calc.add(1, 1) // 2\ncollect_ignore = []\n"})
    await check_verdicts(
        root,
        isolated,
        ("a + b", "a / 0", Status.KILLED, "a conftest.py or plug-in can't be loaded"),
        ("[]", "['test_calc.py']", Status.KILLED, "no tests are left"),
    )


async def test_a_mutant_of_a_place_that_is_not_there_has_no_verdict(root: Path) -> None:
    oracle = await Oracle.of(root, pytest_command(sys.executable), isolated=False)
    gone = evolve(mutant(root, "calc.py", "unused", "x"), path="gone.py")
    assert (await oracle.verdict_of(gone)).status is Status.RUNTIME_ERROR


async def test_tests_that_name_the_projects_own_path_see_the_mutant(root: Path, isolated: bool) -> None:
    if not isolated:
        pytest.skip("without namespaces the copy is not at the project's own path")
    written(root, {"test_calc.py": f"import sys\nsys.path.insert(0, {str(root)!r})\n" + TESTS})
    await check_verdicts(root, isolated, ("a + b", "a - b", Status.KILLED, "a test failed"))


async def test_an_editable_installs_path_does_not_hide_the_mutant(root: Path, tmp_path: Path) -> None:
    (root / "src").mkdir()
    (root / "calc.py").rename(root / "src" / "calc.py")
    written(tmp_path / "site", {"sitecustomize.py": f"import sys\nsys.path.append({str(root / 'src')!r})\n"})
    oracle = await Oracle.of(
        root, pytest_command(sys.executable), isolated=False, environment={"PYTHONPATH": str(tmp_path / "site")}
    )
    assert (await oracle.verdict_of(mutant(root, "src/calc.py", "a + b", "a - b"))).status is Status.KILLED


async def test_environments_stay_where_they_are_and_caches_are_not_copied(root: Path, isolated: bool) -> None:
    stale = "import pathlib\n\ndef test_seen():\n    here = pathlib.Path(__file__).parent\n"
    stale += (
        "    assert (here / '.venv' / 'marker').read_text() == 'x'\n    assert not (here / '.pytest_cache').exists()\n"
    )
    written(root, {".venv/marker": "x", ".pytest_cache/x": "", "test_places.py": stale})
    await check_verdicts(
        root,
        isolated,
        ("a + b", "a * b", Status.KILLED, "a test failed"),
        ("unused", "other", Status.SURVIVED, "the tests pass"),
    )


async def test_tests_may_start_what_is_installed_beside_their_interpreter(
    root: Path, isolated: bool, tmp_path: Path
) -> None:
    """The environment of an interpreter needs no activation: the tools find it, too."""
    written(tmp_path / "bin", {"check": "#!/bin/sh\nbeside\n", "beside": "#!/bin/sh\ngrep -q 'a + b' calc.py\n"})
    for program in (tmp_path / "bin").iterdir():
        program.chmod(0o755)
    oracle = await Oracle.of(root, [str(tmp_path / "bin/check")], isolated=isolated)
    assert (await oracle.verdict_of(mutant(root, "calc.py", "a + b", "a - b"))).status is Status.KILLED


async def test_the_command_may_name_the_directory_of_the_mutant(root: Path) -> None:
    written(root, {"pkg/inner/calc.py": CALC})
    oracle = await Oracle.of(
        root, ("sh", "-c", 'case "$0" in ./...|./.) ;; *) exit 1; esac', "./{directory}"), isolated=False
    )
    for file, status in (("calc.py", Status.SURVIVED), ("pkg/inner/calc.py", Status.KILLED)):
        assert (await oracle.verdict_of(mutant(root, file, "a + b", "a - b"))).status is status


async def test_beside_an_empty_home_directory_tools_find_what_they_keep_in_the_users(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    for name, value in {"HOME": str(home), "CARGO_HOME": "/cargo"}.items():
        monkeypatch.setenv(name, value)
    for name in ("GOPATH", "RUSTUP_HOME"):
        monkeypatch.delenv(name, raising=False)
    script = f'[ "$HOME" != {home} ] && [ $CARGO_HOME:$GOPATH:$RUSTUP_HOME = /cargo:{home}/go:{home}/.rustup ]'
    await Oracle.of(root, ("sh", "-c", script), isolated=False)


async def test_tests_that_fail_without_a_mutant_are_no_oracle(root: Path) -> None:
    written(root, {"test_red.py": "def test_red():\n    assert not 'red'\n"})
    with pytest.raises(BaselineError) as caught:
        await Oracle.of(root, pytest_command(sys.executable), isolated=False)
    assert "a test failed" in caught.value.problem
    assert "not 'red'" in caught.value.first_failure


async def test_a_script_that_fails_without_a_mutant_is_shown_by_its_name(root: Path) -> None:
    with pytest.raises(BaselineError, match=r"^`go test \./\.\.\.` fails in a fresh copy"):
        await Oracle.of(root, ("sh", "-c", "exit 1", "go test", "./{directory}"), isolated=False)


async def test_results_that_differ_are_found(root: Path) -> None:
    oracle = await Oracle.of(root, ("grep", "-q", "a + b", "calc.py"), isolated=False)
    killed, survives = mutant(root, "calc.py", "a + b", "a - b"), mutant(root, "calc.py", "unused", "x")

    def results(*statuses: Status) -> list[Result]:
        return [Result(one, status) for one, status in zip((killed, survives), statuses, strict=True)]

    reported: list[Difference | None] = []
    right = await oracle.compare(results(Status.TIMEOUT, Status.NO_COVERAGE), jobs=2, report=reported.append)
    assert (right.checked, right.differences, right.unsteady) == (2, (), ())
    assert reported == [None, None]
    reported.clear()
    wrong = await oracle.compare(results(Status.NO_COVERAGE, Status.KILLED), jobs=2, report=reported.append)
    assert sorted(map(str, reported)) == sorted(map(str, wrong.differences))
    assert [(each.result.mutant, each.verdict.status) for each in wrong.differences] == [
        (killed, Status.KILLED),
        (survives, Status.SURVIVED),
    ]
    assert str(wrong.differences[0]) == (
        "calc.py:2:12 test ('a - b'): NoCoverage, but Killed in a fresh process (exit code 1)"
    )
    assert (await oracle.compare(results(Status.IGNORED, Status.KILLED), count=1)).checked == 1


async def test_a_mutant_that_can_not_be_compiled_contradicts_nothing(root: Path) -> None:
    refusal = "/tests/Cart.cs(12,5): error CS0161: 'Cart.Rows()': not all code paths return a value [/src/Shop.csproj]"
    command = ("sh", "-c", f'grep -q "a + b" calc.py || {{ echo "{refusal}"; exit 1; }}')
    oracle = await Oracle.of(root, command, isolated=False)
    survivor = Result(mutant(root, "calc.py", "a + b", "a - b"), Status.SURVIVED)
    assert (await oracle.compare([survivor])).differences == ()


ENDING = """import os

def check(a):
    if a != 1:
        os._exit(a)
"""


async def test_a_runtime_error_is_contradicted_where_pytest_comes_to_its_end(root: Path) -> None:
    written(root, {"ending.py": ENDING, "test_calc.py": TESTS + "    import ending\n    ending.check(1)\n"})
    oracle = await Oracle.of(root, pytest_command(sys.executable), isolated=False)
    ended = [mutant(root, "ending.py", "a != 1", f"a != {code}") for code in (0, 2)]  # with 1, as where a test fails
    fails, passes = mutant(root, "calc.py", "a + b", "a - b"), mutant(root, "calc.py", "unused", "x")
    silent = mutant(root, "ending.py", "if a != 1:\n        os._exit(a)", "os._exit(0)")  # as where the tests pass
    results = [Result(one, Status.RUNTIME_ERROR) for one in (*ended, silent, fails, passes)]
    found = await oracle.compare(results, jobs=2)
    assert {difference.result.mutant for difference in found.differences} == {fails, passes}
    assert (found.checked, found.unsteady) == (5, ())


async def test_what_fails_after_the_last_test_is_no_kill(root: Path, isolated: bool) -> None:
    left = "import json\n\ndef leave():\n    json.kept = 1\n    return False\n"
    finish = "import json\n\ndef pytest_sessionfinish():\n    assert json.kept == 1\n"
    ignore = "\ndef pytest_ignore_collect():\n    import left\n    return left.leave() or None\n"
    written(root, {"left.py": left, "conftest.py": finish + ignore})
    after = mutant(root, "left.py", "json.kept = 1", "json.kept = 2")
    none_left = mutant(root, "left.py", "return False", "return True")
    fails = mutant(root, "calc.py", "a + b", "a - b")
    oracle = await Oracle.of(root, pytest_command(sys.executable), isolated=isolated)
    found = await oracle.compare([Result(one, Status.SURVIVED) for one in (after, none_left, fails)], jobs=2)
    assert {difference.result.mutant for difference in found.differences} == {none_left, fails}
    assert (await oracle.compare([Result(after, Status.KILLED)])).differences == ()


async def test_pytest_may_fail_after_the_last_test_also_without_a_mutant(root: Path, isolated: bool) -> None:
    covered = """import pytest

@pytest.hookimpl(hookwrapper=True)
def pytest_runtestloop(session):
    yield
    session.testsfailed += 1  # as pytest-cov says that too little is covered
"""
    written(root, {"conftest.py": covered})
    fails, passes = mutant(root, "calc.py", "a + b", "a - b"), mutant(root, "calc.py", "unused", "x")
    results = [Result(one, status) for one in (fails, passes) for status in (Status.KILLED, Status.SURVIVED)]
    oracle = await Oracle.of(root, pytest_command(sys.executable), isolated=isolated)
    found = await oracle.compare(results, jobs=2)
    assert {(one.result.mutant, one.result.status) for one in found.differences} == {
        (fails, Status.SURVIVED),
        (passes, Status.KILLED),
    }


async def test_tests_that_fail_by_chance_are_no_difference(root: Path, tmp_path: Path) -> None:
    flaky = f"cd {tmp_path} && echo >> runs && test $(($(wc -l < runs) % 2)) = 1"
    oracle = await Oracle.of(root, ("sh", "-c", flaky), isolated=False)
    result = Result(mutant(root, "calc.py", "unused", "x"), Status.SURVIVED)
    reported: list[Difference | None] = []
    found = await oracle.compare([result], report=reported.append)
    assert (len(found.differences), len(found.unsteady)) == (0, 1)
    assert "but Killed in a fresh process (" in str(reported[0])
    assert str(reported[0]).endswith("), by chance: another one agrees")
