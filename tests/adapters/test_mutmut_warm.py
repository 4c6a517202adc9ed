"""The warm host: who pays for its start, what edits do to it, and that nothing outlives its purpose."""

import asyncio
import contextlib
import gc
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import aclosing

import psutil
import pytest
from support.dialects import Msp, spoken_to
from support.environments import environment, repair
from support.files import written
from support.mutmut_trial import Trial
from support.servers import until
from support.strays import below, with_argument

from msp_bridge.adapter import Mutant, Status
from msp_bridge.python_engine.host import Host
from msp_bridge.workspace.configuration import Configuration
from msp_bridge.workspace.open_workspaces import OpenWorkspaces

TABLE = b'[tool.mutmut]\nsource_paths = ["pkg"]\ntimeout_multiplier = 1000\n'
HANGING = {
    "pyproject.toml": TABLE,
    "pkg/m.py": b"def f(a):\n    return a + 1\n\ndef g(a):\n    return a + 2\n\ndef h(a):\n    return a + 3\n",
    "tests/test_m.py": b"import time\nfrom pkg.m import f, g, h\n\n"
    b"def test_f():\n    while f(1) != 2: time.sleep(0.01)\n\n"
    b"def test_g():\n    while g(1) != 3: time.sleep(0.01)\n\n"
    b"def test_h():\n    assert h(1) == 4\n",
}


def namespace(pid: int) -> str:
    """The PID namespace of a process; empty where there are none, or when it is gone."""
    with contextlib.suppress(OSError):
        return os.readlink(f"/proc/{pid}/ns/pid")
    return ""


def lasting(host: int) -> set[int]:
    """The host's descendants that are not in a world of a mutant's."""
    return {pid for pid in below(host) if namespace(pid) in ("", namespace(host)) and psutil.pid_exists(pid)}


def worlds(host: int) -> int:
    """How many mutants have one: those that are tested, and those for which a process was forked ahead.

    Each has the first process of its namespace, and others; that one may also wait alone for the next mutant.
    """
    counts = Counter(namespace(pid) for pid in below(host))
    return sum(count > 1 for name, count in counts.items() if name not in ("", namespace(host)))


async def waiting_worlds(host: int) -> int:
    """Those of the processes that are forked ahead, when no mutant is tested: after the last one's has ended."""
    looks = [worlds(host)]
    async with asyncio.timeout(60):
        while len(looks) < 10 or len(set(looks[-10:])) > 1:
            await asyncio.sleep(0.05)
            looks.append(worlds(host))
    return looks[-1]


def of(mutants: list[Mutant], *functions: str) -> list[Mutant]:
    """The mutants of these functions."""
    return [mutant for mutant in mutants if any(f".x_{function}__" in mutant.description for function in functions)]


async def test_one_mutant_again_is_served_by_the_same_host(tmp_path):
    async with Trial.of("py_calc", tmp_path) as trial:
        mutants = of(await trial.discover(), "add")
        first = await trial.test(mutants)
        host = await trial.host()
        processes, waiting = lasting(host), await waiting_worlds(host)
        for _ in range(3):
            again = await trial.test(mutants)
            assert [result.status for result in again.values()] == [result.status for result in first.values()]
        assert await trial.host() == host
        assert lasting(host) == processes
        assert await waiting_worlds(host) == waiting


async def test_nothing_is_measured_again_by_the_next_server(tmp_path):
    async with Trial.of("py_calc", tmp_path) as trial:
        before = await trial.test(of(await trial.discover(), "add"))
        measured = json.loads((trial.copy.parent / "baseline.json").read_bytes())["report"]["durations"]
    async with Trial.of("py_calc", tmp_path) as trial:
        after = await trial.test(of(await trial.discover(), "add"))
        assert [result.status for result in after.values()] == [result.status for result in before.values()]
        again = json.loads((trial.copy.parent / "baseline.json").read_bytes())["report"]["durations"]
        assert again == measured, "no two runs take the same time"


async def test_each_edit_of_a_project_counts_at_once(tmp_path):
    def add_is_right(results):
        return {result.status for result in results.values()} == {Status.KILLED}

    async with Trial.of("py_calc", tmp_path) as trial:
        # of a test
        mutants = of(await trial.discover(), "untested")
        assert {result.status for result in (await trial.test(mutants)).values()} == {Status.NO_COVERAGE}
        new = "from calc.ops import untested\ndef test_new():\n    assert untested(2) == 6\n\n"
        trial.edit("tests/test_ops.py", "def test_add", f"{new}def test_add")
        results = (await trial.test(mutants)).values()
        assert {result.status for result in results} == {Status.KILLED}
        assert {result.killed_by for result in results} == {("tests/test_ops.py::test_new",)}
        # of the same length within the same second
        for old, new in (("== 3, ", "!= 9, "), ("!= 9, ", "== 3, ")):
            trial.edit("tests/test_ops.py", old, new)
            results = await trial.test(of(await trial.discover(), "add"))
            assert {each.status for each in results.values()} == {Status.KILLED if "3" in new else Status.SURVIVED}
        # of a source: it has new mutants, and the old ones get no result; the front end discovers the file again
        old = of(await trial.discover(), "add", "absolute")
        trial.edit("src/calc/ops.py", "return a + b", "return b + a")
        assert await trial.test(old) == {}
        assert add_is_right(await trial.test(of(await trial.discover(), "add")))
        # files appear and vanish
        trial.write("src/calc/more.py", "def more(a):\n    return a + 1\n")
        trial.write("tests/test_more.py", "from calc.more import more\n\ndef test_more():\n    assert more(1) == 2\n")
        new = of(await trial.discover(), "more")
        assert {result.status for result in (await trial.test(new)).values()} == {Status.KILLED}
        (trial.root / "src/calc/more.py").unlink()
        (trial.root / "tests/test_more.py").unlink()
        trial.edit("src/calc/ops.py", "b + a", "a + b")
        assert await trial.test(new) == {}
        assert add_is_right(await trial.test(of(await trial.discover(), "add")))
        assert not (trial.copy / "src/calc/more.py").exists()
        # of the configuration: mutants of a file that it excludes now get no result
        mutants = of(await trial.discover(), "add", "poke")
        trial.edit("pyproject.toml", "left_alone.py", "ops.py")
        assert {result.mutant for result in (await trial.test(mutants)).values()} == set(of(mutants, "poke"))


async def test_a_file_saved_during_a_run_counts_from_then_on(tmp_path):
    files = {
        "pyproject.toml": TABLE,
        "pkg/a.py": b"def a(x):\n    return x + 1 - 2 + 3 - 4\n",
        "pkg/b.py": b"def b(x):\n    return x + 1\n",
        "tests/test_m.py": b"from pkg.a import a\nfrom pkg.b import b\n\ndef test_a():\n    assert a(1) == -1\n\n"
        b"def test_b():\n    assert b(1) == 2\n",
    }
    async with Trial.of(files, tmp_path, jobs=1) as trial:
        mutants = await trial.discover()
        results = []
        async with aclosing(trial.adapter.test(mutants)) as stream:
            async for result in stream:
                if not results:
                    trial.edit("pkg/b.py", "x + 1", "1 + x")
                results.append(result)
        assert Counter(result.mutant for result in results) == Counter(m for m in mutants if m.path == "pkg/a.py")
        assert {result.status for result in results} == {Status.KILLED}


async def test_closing_the_results_half_way_leaves_no_worker_and_keeps_the_host(tmp_path):
    async with Trial.of(HANGING, tmp_path) as trial:
        mutants = await trial.discover()
        host = await trial.host()
        idle, ahead = lasting(host), await waiting_worlds(host)
        results = []
        async with aclosing(trial.adapter.test([*of(mutants, "h"), *of(mutants, "f", "g")])) as stream:
            async for result in stream:
                results.append(result)
                if len(results) == len(of(mutants, "h")):
                    break
            waiting = asyncio.create_task(anext(stream))
            await until(lambda: max(worlds(host) - ahead, len(lasting(host) - idle)) >= 2)
            waiting.cancel()
            await asyncio.wait([waiting])
        assert lasting(host) == idle
        assert worlds(host) <= ahead
        assert {result.status for result in results} == {Status.KILLED}
        again = await trial.test(of(mutants, "h"))
        assert [result.status for result in again.values()] == [result.status for result in results]
        assert await trial.host() == host


async def test_cancelling_while_the_host_is_prepared_ends_it(tmp_path, monkeypatch):
    # The program that lists mutants is ended when it takes long, as on a busy machine, and the run would start another.
    monkeypatch.setattr("msp_bridge.python_engine.listing_program.SLOW_S", 600.0)
    files = {**HANGING, "tests/test_slow.py": b"import time\n\ndef test_slow():\n    time.sleep(1000)\n"}
    async with Trial.of(files, tmp_path) as trial:
        mutants = await trial.discover()
        before = set(below(os.getpid()))
        run = asyncio.create_task(trial.test(mutants))
        await until(lambda: any((tmp_path / "cache").glob("copy-0/live.log")))
        run.cancel()
        await asyncio.wait([run])
        assert set(below(os.getpid())) == before
        (trial.root / "tests/test_slow.py").unlink()
        trial.write("tests/test_more.py", "")
        assert {result.status for result in (await trial.test(of(mutants, "h"))).values()} == {Status.KILLED}


async def test_a_newer_request_and_a_discovery_are_served_while_an_older_one_runs(tmp_path):
    async with Trial.of(HANGING, tmp_path) as trial:
        mutants = await trial.discover()
        host = await trial.host()
        idle, ahead = lasting(host), await waiting_worlds(host)
        older = asyncio.create_task(trial.test(of(mutants, "f")[:1]))
        await until(lambda: max(worlds(host) - ahead, len(lasting(host) - idle)) >= 1)
        assert {result.status for result in (await trial.test(of(mutants, "h"))).values()} == {Status.KILLED}
        assert await trial.discover() == mutants
        assert not older.done()
        older.cancel()
        await asyncio.wait([older])
        assert lasting(host) == idle
        assert worlds(host) <= ahead


async def test_nothing_is_started_for_results_that_nobody_awaits(tmp_path, monkeypatch):
    monkeypatch.setenv("MSP_BRIDGE_ISOLATION", "overlay,pid")  # the log lies in the temporary directory
    log = tmp_path / "log"
    files = {
        "pyproject.toml": TABLE,
        "pkg/m.py": b"def f(a):\n    return a + 1 - 2 + 3 - 4 + 5 - 6\n\ndef g(a):\n    return a + 1\n",
        "tests/test_m.py": b"import os\nfrom pkg.m import f, g\n\ndef test_f():\n"
        + f"    with open({str(log)!r}, 'a') as log: print('started', file=log)\n".encode()
        + b"    assert f(1) == -2\n\ndef test_g():\n    assert g(1) == 2\n",
    }
    async with Trial.of(files, tmp_path, jobs=1) as trial:
        mutants = await trial.discover()
        await trial.host()
        before = log.read_text().count("started")
        async with aclosing(trial.adapter.test(of(mutants, "f"))) as older:
            await anext(older)
            assert len(await trial.test(of(mutants, "g"))) == len(of(mutants, "g"))
            started = log.read_text().count("started") - before
            assert 1 <= started <= 4 < len(of(mutants, "f")), "one result, and the jobs that run beside it"
            rest = [result async for result in older]
        assert len(rest) == len(of(mutants, "f")) - 1


def kill(host: int) -> None:
    """Kill the process below the supervisor of a host, and wait until it is gone."""
    (supervisor,) = psutil.Process(host).children()
    (process,) = supervisor.children()
    process.kill()
    process.wait(timeout=60)


async def test_a_host_that_is_killed_costs_nothing_but_time(tmp_path):
    async with Trial.of(HANGING, tmp_path) as trial:
        mutants = of(await trial.discover(), "h")
        host = await trial.host()
        idle = psutil.Process(host).children(recursive=True)
        results = []
        async with aclosing(trial.adapter.test([*mutants, *mutants])) as stream:
            async for result in stream:
                if not results:
                    kill(host)
                results.append(result)
        assert [result.status for result in results] == [Status.KILLED] * 2 * len(mutants)
        assert await trial.host() != host
        await until(lambda: not any(process.is_running() for process in idle))  # they end with the host, by themselves


async def test_a_host_that_is_killed_while_it_is_waited_for_is_replaced(tmp_path, monkeypatch):
    hosts, settle = [], Host.settle

    async def killed_at_first(host):
        hosts.append(host)
        if len(hosts) == 1:
            kill(host._process.pid)
        await settle(host)

    monkeypatch.setattr(Host, "settle", killed_at_first)
    async with Trial.of(HANGING, tmp_path) as trial:
        await trial.host()
    assert len({id(host) for host in hosts}) == 2


async def test_a_mutant_that_costs_two_hosts_is_a_runtime_error(tmp_path, monkeypatch):
    monkeypatch.setenv("MSP_BRIDGE_ISOLATION", "off")  # in a world of its own it can't reach the host
    files = {
        "pyproject.toml": TABLE,
        "pkg/m.py": b"def f(a):\n    return a + 1\n",
        "tests/test_m.py": b"import os, signal, time\nfrom pkg.m import f\n\ndef test_f():\n    if f(1) != 2:\n"
        b"        os.kill(os.getppid(), signal.SIGKILL)\n        time.sleep(1000)\n",
    }
    async with Trial.of(files, tmp_path) as trial:
        mutants = await trial.discover()
        results = await trial.test(mutants[:1])
        assert [result.status for result in results.values()] == [Status.RUNTIME_ERROR]
        assert "the process of the tests ended" in (results[mutants[0].description or ""].status_reason or "")


WHAT_TESTS_DO = """import os, subprocess, sys, warnings
from pathlib import Path
from pkg import m

argv = [sys.executable, "-c", "import time; time.sleep(1000)", WORD]
os.write(1, b'{"id": 1}\\n')

def test_leaves():
    warnings.simplefilter("ignore")
    subprocess.Popen(argv, start_new_session=True)
    assert m.leaves(1) == 2

def test_forks():
    os.fork() or (os.setsid(), os.fork() or os.execv(argv[0], argv), os._exit(0))
    assert m.forks(1) == 2

def test_prints():
    os.write(1, b'{"id": 1}\\n')
    print("x", file=sys.__stdout__, flush=True)
    subprocess.run(["echo", '{"id": 2}'])
    assert os.read(0, 10) == b""
    assert m.prints(1) == 2

def test_writes(tmp_path):
    here = Path(__file__).parent.parent
    assert (here / "data/kept.txt").read_text() == "kept"
    (here / "data/kept.txt").write_text("kept")
    for place in (here, tmp_path):
        (place / "new.txt").write_text("")
    assert m.writes(1) == 2

def test_finds_its_environment():  # which is a link in the project
    assert m.finds(1) == 2 and Path(sys.executable).exists()
"""


async def test_what_tests_leave_running_print_and_write_does_no_harm(tmp_path):
    word = f"left-by-{os.getpid()}"
    names = ("leaves", "forks", "prints", "writes", "finds")
    files = {
        "pyproject.toml": TABLE,
        "pkg/m.py": "".join(f"def {name}(a):\n    return a + 1\n\n" for name in names).encode(),
        "data/kept.txt": b"kept",
        "tests/test_m.py": WHAT_TESTS_DO.replace("WORD", repr(word)).encode(),
    }
    async with Trial.of(files, tmp_path, python=tmp_path / "project/.venv/bin/python") as trial:
        (trial.root / ".venv").symlink_to(sys.prefix)
        results = (await trial.test()).values()
        assert {result.status for result in results} == {Status.KILLED}
        assert len({result.killed_by for result in results}) == len(names)
        await until(lambda: with_argument(word) == {})  # a result may come just before its namespace has ended


def suspended(awaited: object) -> Iterator[str]:
    """The names of the bridge's functions that wait for each other, from the coroutine of a task inwards."""
    for kind in ("cr", "ag"):  # a coroutine, or an asynchronous generator
        if (frame := getattr(awaited, f"{kind}_frame", None)) is not None:
            if "/msp_bridge/" in frame.f_code.co_filename:
                yield frame.f_code.co_qualname
            yield from suspended(getattr(awaited, f"{kind}_await"))
            return
    for inner in gc.get_referents(awaited):  # of a call of `anext`, which has no attribute for what it waits for
        if "async_generator" in type(inner).__name__:
            yield from suspended(inner)


def of_the_request() -> list[str]:
    """The functions that wait in the four tasks of the request that runs."""
    names = ("mutationTest ", "answer ", "gathering results", "job")
    tasks = [task for task in asyncio.all_tasks() if task.get_name().startswith(names)]
    return [name for task in tasks for name in suspended(task.get_coro())]


def processes_above(pid: int) -> int:
    """How many processes there are from this one down to the parent of `pid`; 0 where that has ended."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return [parent.pid for parent in psutil.Process(pid).parents()].index(os.getpid()) + 1
    return 0


async def test_twelve_functions_and_seven_processes_wait_for_a_mutant(tmp_path, monkeypatch):
    """The walk in docs/explanation/architecture.md. Between the seven and the mutant is the first process of its world."""
    monkeypatch.setenv("MSP_BRIDGE_CACHE", str(tmp_path / "cache"))
    async with (
        Trial.of(HANGING, tmp_path) as trial,
        aclosing(OpenWorkspaces(trial.root, Configuration(jobs=1))) as workspaces,
        spoken_to(Msp(), workspaces) as client,
    ):
        await client.request("configure", {})
        ((path, file),) = (await client.request("discover", {}))["files"].items()
        await client.ask("mutationTest", {"mutants": {path: {"mutants": file["mutants"][:1]}}})
        await until(lambda: "Host._answer" in of_the_request() and "HostSlot.prepared" not in of_the_request())
        await until(lambda: max(map(processes_above, below(os.getpid()))) == 8)
        assert len(of_the_request()) == 12, of_the_request()


@pytest.mark.parametrize("place", ["installed", "beside"])
async def test_a_package_that_changes_meanwhile_is_the_one_that_mutants_meet(tmp_path, place):
    """Installed anew, or edited where it lies beside the project, as in a workspace."""
    python = environment(tmp_path / "venv", {"beside.pth": f"{tmp_path / 'beside'}\n"})
    repair(python)
    (site,) = (tmp_path / "venv").glob("lib/python3*/site-packages")
    package = site if place == "installed" else tmp_path / "beside"
    written(package, {"rates.py": "LIMIT = 5\n"})
    files = {
        "pyproject.toml": TABLE,
        "pkg/m.py": b"import rates\n\n\ndef is_low(a):\n    return a < rates.LIMIT\n",
        "tests/test_m.py": b"from pkg.m import is_low\n\n\ndef test_low():\n    assert (is_low(4), is_low(5)) == (True, False)\n",
    }
    async with Trial.of(files, tmp_path, python=python) as trial:
        [first] = (await trial.test()).values()
        written(package, {"rates.py": "LIMIT = 4 + 1 / 2\n", "rates-2.dist-info/RECORD": ""})
        [second] = (await trial.test()).values()
        written(package, {"rates.py": "LIMIT = 5\n", "rates-3.dist-info/RECORD": ""})
    async with Trial.of({}, tmp_path, python=python) as trial:
        [third] = (await trial.test()).values()
    assert [each.status for each in (first, second, third)] == [Status.KILLED, Status.SURVIVED, Status.KILLED]
