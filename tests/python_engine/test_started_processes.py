"""Python processes that tests start tell what they run, and notice nothing of it; where they can't, anything may have run."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.mutmut_trial import PACKAGE, Trial

from msp_bridge.adapter import Status
from msp_bridge.python_engine.programs import code_runs
from msp_bridge.python_engine.programs.audit_events import listen
from msp_bridge.python_engine.programs.late_imports import Line
from msp_bridge.python_engine.programs.process_starts import ConcernedStarts
from msp_bridge.python_engine.programs.started_processes import NOBODY_KNOWS, POPEN, StartedProcesses

CALC = b"""def used(n):
    return n + 1


def never(n):
    return n + 2


def inside(n):
    return n + 3
"""
MAIN = b"""import sys

from pkg.calc import used


def main(n):
    print(used(n))


if __name__ == "__main__":
    main(int(sys.argv[1]))
"""
TESTS = b"""import subprocess
import sys

import pytest
from pkg.calc import inside


@pytest.fixture(scope="module")
def answer():
    return subprocess.run([sys.executable, "-m", "pkg", "4"], capture_output=True, text=True, check=True)


def test_output(answer):
    assert answer.stdout == "5\\n"


def test_errors(answer):
    assert not answer.stderr


def test_inside():
    assert inside(1) == 4
"""


FILES = {**PACKAGE, "pkg/calc.py": CALC, "pkg/__main__.py": MAIN, "tests/test_a.py": TESTS}


async def test_a_mutant_is_tested_by_what_runs_it_in_a_process_of_its_own(tmp_path: Path) -> None:
    async with Trial.of(FILES, tmp_path) as trial:
        results = await trial.test()
        assert not trial.notices
    found = {
        name.partition("__mutmut")[0]: (result.status, set(result.covered_by or ())) for name, result in results.items()
    }
    of_process = {"tests/test_a.py::test_output", "tests/test_a.py::test_errors"}
    assert found == {
        "pkg.calc.x_used": (Status.KILLED, of_process),
        "pkg.calc.x_never": (Status.NO_COVERAGE, set()),
        "pkg.calc.x_inside": (Status.KILLED, {"tests/test_a.py::test_inside"}),
        "pkg.__main__.x_main": (Status.KILLED, of_process),
    }


@pytest.mark.parametrize("restarted", [False, True], ids=["the same server", "the next one"])
@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("pkg/calc.py", "return n + 1", "return never(n) - 1"),
        ("pkg/__main__.py", "    print(used(n))", "    from pkg.calc import never\n\n    print(never(n) - 1)"),
        ("tests/test_a.py", '"-m", "pkg", "4"', '"-c", "from pkg.calc import never; print(never(3))"'),
    ],
    ids=["what runs", "what runs it", "the test"],
)
async def test_after_an_edit_it_tells_what_it_runs_now(
    tmp_path: Path, path: str, old: str, new: str, restarted: bool
) -> None:
    async with Trial.of(FILES, tmp_path) as trial:
        assert await statuses(trial, "x_never") == {Status.NO_COVERAGE}
        trial.edit(path, old, new)
        found = None if restarted else await statuses(trial, "x_never")
    if restarted:
        async with Trial.of({}, tmp_path) as trial:
            found = await statuses(trial, "x_never")
    assert found == {Status.KILLED}


async def statuses(trial: Trial, function: str) -> set[Status]:
    return {result.status for name, result in (await trial.test()).items() if function in name}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    package = tmp_path / "project" / "pkg"
    package.mkdir(parents=True)
    (package / "calc.py").write_bytes(CALC)
    (package / "__main__.py").write_bytes(MAIN)
    return tmp_path / "project"


@pytest.fixture(scope="module")
def listening() -> list[StartedProcesses]:
    """What is told of starts: a hook stays for ever."""
    processes: list[StartedProcesses] = []
    listen({POPEN}, lambda _event, arguments: [each.concerns(arguments) for each in processes])
    return processes


@pytest.fixture
def started(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listening: list[StartedProcesses]
) -> Iterator[StartedProcesses]:
    """Of the tests of the project, whose `calc.py` is loaded."""
    if sys.version_info < (3, 12) and not code_runs.is_known():
        pytest.skip("this build of Python does not say which code has run")
    monkeypatch.chdir(project)
    monkeypatch.setattr(subprocess, "_fork_exec", subprocess._fork_exec)  # type: ignore[attr-defined] # is restored
    sources = [str(project / "pkg" / name) for name in ("calc.py", "__main__.py")]
    processes = StartedProcesses(tmp_path / "started", ConcernedStarts([str(project)]), sources, sources[:1])
    processes.begin()
    listening[:] = [processes]
    yield processes
    listening.clear()


def run(*words: str, **named: object) -> None:
    subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL, **named)  # type: ignore[call-overload]


def lines(started: StartedProcesses, project: Path) -> set[Line]:
    """With names relative to the project, in a form that does not depend on whether it was the name or the path."""
    return {(name.removeprefix(f"{project}/"), line) for name, line in started.lines()}


def test_the_lines_are_those_of_functions_that_ran_and_of_files_that_nothing_else_has_imported(
    started: StartedProcesses, project: Path
) -> None:
    run("-m", "pkg", "4")
    found = lines(started, project)
    assert {line for name, line in found if name == "pkg/calc.py"} == {1, 2}
    assert {1, 3, 6, 7, 10, 11} <= {line for name, line in found if name == "pkg/__main__.py"}
    assert started.late == {str(project / "pkg/__main__.py")}
    assert started.lines() == set()


def with_script(project: Path) -> None:
    script = project / "tool"
    script.write_text(f"#!{sys.executable}\nimport sys\nsys.path.insert(0, '.')\nfrom pkg.calc import used\nused(1)\n")
    script.chmod(0o755)
    subprocess.run([script], check=True)


CALL = "from pkg.calc import used; used(1)"
IN_TURN = "import subprocess, sys; raise SystemExit(subprocess.run(sys.argv[1:]).returncode)"


def between(depth: int) -> list[str]:
    """Processes before another, each of which starts the next one."""
    return [sys.executable, "-c", IN_TURN] * depth


@pytest.mark.parametrize(
    "start",
    [
        lambda project: run("-c", CALL, env={}),
        lambda project: run("-c", CALL, env={**os.environ, "PYTHONPATH": "elsewhere"}),
        lambda project: run("-c", f"import subprocess; subprocess.run(['true']); {CALL}"),
        lambda project: run("-c", f"{CALL}; raise SystemExit(0)"),
        lambda project: run(*between(1)[1:], sys.executable, "-c", CALL),
        lambda project: run(*between(2)[1:], sys.executable, "-c", CALL, env={}),
        lambda project: subprocess.Popen(args=(os.path.basename(sys.executable), "-c", CALL), env=WITH_PATH).wait(),
        with_script,
    ],
    ids=[
        "without variables",
        "PYTHONPATH",
        "with another program",
        "exit",
        "in turn",
        "in its turn",
        "found in PATH",
        "script",
    ],
)
def test_it_is_told_however_python_is_started(
    started: StartedProcesses, project: Path, start: Callable[[Path], object]
) -> None:
    start(project)
    found = lines(started, project)
    assert {("pkg/calc.py", 1), ("pkg/calc.py", 2)} <= found
    assert NOBODY_KNOWS not in found


WITH_PATH = {"PATH": os.path.dirname(sys.executable)}


@pytest.mark.parametrize(
    "start",
    [
        lambda: run("-S", "-c", CALL),
        lambda: run("-I", "-c", "pass"),
        lambda: run("-c", f"{CALL}; import os; os._exit(0)"),
        lambda: run("-c", f"{CALL}; import os, sys; os.execv(sys.executable, [sys.executable, '-c', 'pass'])"),
        lambda: run("-c", "import os; os.fork() or os._exit(0)"),
        lambda: run(*between(1)[1:], sys.executable, "-S", "-c", CALL),
        lambda: run(*between(2)[1:], sys.executable, "-Im", "this"),
        lambda: run("-c", "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'input()'], stdin=-1)"),
        lambda: run("-c", "import subprocess; subprocess.run('python -c pass', shell=True)"),
        lambda: run("-c", "import os; os.waitpid(os.posix_spawn('/bin/true', ['true'], {}), 0)"),
        lambda: run("-c", "import multiprocessing.popen_spawn_posix"),
        lambda: subprocess.run("true", shell=True, check=True),
        lambda: killed(),
        lambda: subprocess.Popen(
            [sys.executable, "-c", "import os; os.rmdir(os.getcwd()); open('a.py', 'w')"], cwd=gone()
        ).wait(),
    ],
    ids=[
        "-S",
        "-I",
        "_exit",
        "exec",
        "fork",
        "-S in turn",
        "-I in its turn",
        "left alone",
        "shell in turn",
        "posix_spawn",
        "multiprocessing",
        "shell",
        "killed",
        "no directory",
    ],
)
def test_where_it_is_not_told_anything_may_have_run(started: StartedProcesses, start: Callable[[], object]) -> None:
    start()
    assert started.lines() == {NOBODY_KNOWS}


def killed() -> None:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as process:
        process.kill()


def gone() -> Path:
    directory = Path("gone")
    directory.mkdir()
    return directory


def test_what_runs_no_python_of_ours_tells_nothing(started: StartedProcesses) -> None:
    """It is judged by its name, as `test_no_coverage.py` has it."""
    subprocess.run(["true"], check=True)
    with pytest.raises(FileNotFoundError):
        subprocess.Popen(["there-is-none"])
    with pytest.raises(FileNotFoundError):
        subprocess.Popen([sys.executable, "-c", CALL], cwd="there-is-none")
    with pytest.raises(TypeError):
        subprocess.Popen()  # type: ignore[call-overload]
    assert started.lines() == set()


@pytest.mark.parametrize(
    ("names", "may"),
    [
        (["true", "true"], False),
        (["git", "git", "status"], False),
        (["uvx", "uvx", "tool"], True),
        (["/opt/ninja", "ninja"], True),
        (["env", "env", "python3", "-V"], True),
        (["cat", "cat", "pkg/calc.py"], True),
        (["cat", "cat", "--file=pkg"], True),
        (["cat", "cat", "../elsewhere"], False),
        (["../tool", "tool"], True),
        ([], True),
    ],
)
def test_what_runs_or_reads_the_project_is_known_by_its_names(project: Path, names: list[str], may: bool) -> None:
    (project.parent / "tool").write_text("#!/usr/bin/env python3\n")
    assert ConcernedStarts([str(project)]).concerns(str(project), names) == may


def test_what_is_read_and_listed_is_told(started: StartedProcesses, project: Path) -> None:
    run("-c", "import os; open('pkg/calc.py').close(); os.listdir('pkg'); os.listdir()")
    assert lines(started, project) == {("pkg/calc.py", 0), ("pkg/", 0), ("", 0)}


def test_code_that_is_no_source_counts_as_read(started: StartedProcesses, project: Path) -> None:
    (project / "helper.py").write_text("def f():\n    pass\n\n\nf()\n")
    run("-c", "import helper")
    assert lines(started, project) == {("helper.py", 0)}


SEEN = """import os, sys
print(sorted(os.environ.items()), sys.path, sorted(sys.modules), sys.argv, sys.orig_argv, sys.flags)
"""


@pytest.mark.parametrize("python", [[], ["-I"], [*between(2)[1:], sys.executable]], ids=["", "-I", "in its turn"])
@pytest.mark.parametrize("pythonpath", [None, "", "elsewhere"])
@pytest.mark.parametrize("customized", [False, True])
def test_the_process_sees_nothing_of_it(
    project: Path,
    started: StartedProcesses,
    listening: list[StartedProcesses],
    monkeypatch: pytest.MonkeyPatch,
    python: list[str],
    pythonpath: str | None,
    customized: bool,
) -> None:
    environment = {"LANG": "C.UTF-8"} | ({} if pythonpath is None else {"PYTHONPATH": pythonpath})
    if customized:
        (project / "site").mkdir()
        (project / "site" / "sitecustomize.py").write_text("import json\n")
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, ["site", pythonpath]))
    words = [sys.executable, *python, "-c", SEEN]
    seen = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    assert (NOBODY_KNOWS in started.lines()) == ("-I" in python)
    listening.clear()
    monkeypatch.undo()
    plain = subprocess.run(words, env=environment, capture_output=True, text=True, cwd=project)
    assert started.lines() == set()
    assert (seen.stdout, seen.stderr) == (plain.stdout, plain.stderr)
    assert ("'json'" in seen.stdout) == (customized and "-I" not in python)
