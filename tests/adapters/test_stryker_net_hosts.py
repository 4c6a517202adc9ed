"""Test hosts: what a real one of VSTest and a real program of xunit v3 answered, without either, and their time limits."""

import asyncio
import inspect
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from msp_bridge.adapters.stryker_net.hosts import (
    Case,
    Hosts,
    HostsUnavailable,
    Link,
    OutOfTime,
    ThreadTimes,
    activation,
    within,
)
from msp_bridge.adapters.stryker_net.sdk import OBJECT_MODEL, ORIGINAL, SHARED, TEST_HOST, take_precompiled
from msp_bridge.adapters.stryker_net.testing_platform import HostProgram
from msp_bridge.adapters.stryker_net.vstest import TestHost
from support.environments import program
from support.net_trees import host_files

from msp_bridge.processes import ProcessTree

DLL = "/copy/tests/Shop.Tests/bin/Debug/net10.0/Shop.Tests.dll"
PROGRAM = """
import json, socket, sys
port = int(sys.argv[sys.argv.index("--client-port") + 1])
connection = socket.create_connection(("127.0.0.1", port))
stream = connection.makefile("rwb")

def send(message):
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    stream.write(b"Content-Length: %d\\r\\nContent-Type: application/testingplatform\\r\\n\\r\\n" % len(body) + body)
    stream.flush()

def receive():
    head = b""
    while not head.endswith(b"\\r\\n\\r\\n"):
        head += stream.read(1)
    return json.loads(stream.read(int(head.split(b":")[1].split()[0])))

send({"id": receive()["id"], "result": {}})
asked = receive()
send({"id": 77, "method": "client/attachDebugger", "params": {}})
assert receive()["result"] is None
nodes = [{"uid": uid, "display-name": f"Tests.{uid}", "node-type": "action", "time.duration-ms": 250,
          "execution-state": state, "error.message": "no"} for uid, state in (("a", "passed"), ("b", "failed"), ("c", "error"))]
chosen = [test["uid"] for test in asked["params"].get("tests", nodes)]
for node in nodes:
    if node["uid"] in chosen:
        changes = [{"node": {**node, "execution-state": "in-progress"}}, {"node": node}]
        send({"method": "testing/testUpdates/tests", "params": {"changes": changes}})
if "dies" in sys.argv[0]:
    print("Stack overflow.", "\\n   at Shop.Cart.Depth" * 10_000, file=sys.stderr)
    sys.exit(134)
send({"id": asked["id"], "result": {}})
stream.read()
"""


def result(test: str, outcome: int, **fields: Any) -> dict[str, Any]:
    name = f"Tests.{test}"
    case = {"Id": test, "FullyQualifiedName": name, "DisplayName": name, "Source": DLL, "Properties": [{"kept": 1}]}
    return {"TestCase": case, "Outcome": outcome, "Duration": "00:00:00.2500000", **fields}


def completed(**fields: Any) -> dict[str, Any]:
    counts = {"IsCanceled": False, "IsAborted": False, "Error": None}
    return {"TestRunCompleteArgs": counts | fields, "LastRunTests": {"NewTestResults": [result("c", 1)]}}


def vstest(*, stops: bool) -> TestHost:
    """A host without a process: it is told its messages."""
    return TestHost(cast(Link, None), DLL, stops=stops)


def test_results_of_vstest_add_up_to_cases() -> None:
    run = vstest(stops=False)
    run.take("TestExecution.StatsChange", {"NewTestResults": [result("a", 1), result("b", 2, ErrorMessage="no")]})
    run.take("TestExecution.StatsChange", {"NewTestResults": [result("b", 1)]})  # another row of the same theory
    run.take("TestExecution.Completed", completed())
    assert run.over
    assert (run.failures, run.fault) == ([("Tests.b", "no")], None)
    assert {case.id: (case.seconds, case.failed) for case in run.cases.values()} == {
        "a": (0.25, False),
        "b": (0.5, True),
        "c": (0.25, False),
    }
    assert json.loads(run.cases["a"].selector) == result("a", 1)["TestCase"]  # properties and all


def test_with_a_mutant_the_first_failure_counts() -> None:
    run = vstest(stops=True)
    run.take("TestExecution.StatsChange", {"NewTestResults": [result("a", 2, ErrorMessage="no"), result("b", 2)]})
    assert run.failures == [("Tests.a", "no")]


def test_a_host_that_crashes_says_so() -> None:
    run = vstest(stops=True)
    message = (
        "The active test run was aborted. Reason: Test host process crashed : Stack overflow.\n   at Shop.Cart.Depth"
    )
    run.take("TestSession.Message", {"MessageLevel": 2, "Message": message})
    run.take("TestSession.Message", {"MessageLevel": 0, "Message": "Starting test execution"})
    run.take("TestExecution.Completed", completed(IsAborted=True))
    assert run.fault == " ".join(message.split())


def test_the_mutant_is_chosen_by_two_variables() -> None:
    assert activation(7) == {"STRYKER_MUTANT_ID_CONTROL_VAR": "ACTIVE_MUTATION", "ACTIVE_MUTATION": "7"}
    assert activation(None) == {}


@pytest.mark.parametrize(
    ("version", "target", "shared", "replaced"),
    [
        (7, "8.0", 3, {*TEST_HOST, *OBJECT_MODEL, *SHARED}),
        (5, "8.0", 3, {*TEST_HOST, *OBJECT_MODEL, *SHARED}),
        (4, "8.0", 3, {*TEST_HOST, *SHARED}),  # an adapter of a test framework wants a later object model
        (7, "8.0", 4, {*TEST_HOST, *OBJECT_MODEL}),  # tests may use that themselves
        (3, "8.0", 3, set()),  # older
        (7, "10.0", 3, set()),  # for a later runtime
    ],
)
def test_only_a_test_host_that_is_no_older_is_taken_from_the_sdk(
    tmp_path: Path, version: int, target: str, shared: int, replaced: set[str]
) -> None:
    own = host_files(tmp_path / "own", 4, "8.0", model=5)
    sdk = host_files(tmp_path / "sdk", version, target, shared=shared)
    (own / "Shop.Tests.runtimeconfig.json").write_text('{"runtimeOptions": {"tfm": "net9.0"}}')
    linked = tmp_path / "package"
    linked.hardlink_to(own / TEST_HOST[0])
    before = {name: (own / name).read_bytes() for name in (*TEST_HOST, *OBJECT_MODEL, *SHARED)}
    for _ in range(2):  # other tests may lie in the same directory
        assert take_precompiled(sdk, own / "Shop.Tests.dll") == bool(replaced)
    assert {name for name in before if Path(f"{own / name}{ORIGINAL}").exists()} == replaced
    assert all((own / name).read_bytes() == (sdk / name).read_bytes() for name in replaced)
    assert all(Path(f"{own / name}{ORIGINAL}").read_bytes() == before[name] for name in replaced)
    assert linked.read_bytes() == before[TEST_HOST[0]]


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hosts:
    """Test programs that are Python's: `dotnet FILE` runs it."""
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    program(tmp_path / "dotnet", 'exec python3 "$@"')
    for name in ("works.dll", "dies.dll"):
        (tmp_path / name).write_text(PROGRAM)
    return Hosts(HostProgram, {})


async def test_a_test_program_is_asked_for_all_its_tests(programs: Hosts, tmp_path: Path) -> None:
    outcome, cases = await programs.baseline([tmp_path / "works.dll"], 60)
    assert outcome.failures == [("Tests.b", "no"), ("Tests.c", "no")]
    assert [(case.id, case.name, case.seconds, case.failed) for case in cases] == [
        ("a", "Tests.a", 0.25, False),
        ("b", "Tests.b", 0.25, True),
        ("c", "Tests.c", 0.25, True),
    ]


async def test_a_test_program_is_ended_at_the_first_failure(programs: Hosts, tmp_path: Path) -> None:
    _, cases = await programs.baseline([tmp_path / "works.dll"], 60)
    outcome = await programs.run(3, cases[:2], 60)
    assert (outcome.failures, outcome.completed) == ([("Tests.b", "no")], frozenset("ab"))
    outcome = await programs.run(3, cases[:1], 60)
    assert (outcome.failures, outcome.fault, outcome.completed) == ([], None, frozenset("a"))


async def test_a_test_program_that_dies_says_so(programs: Hosts, tmp_path: Path) -> None:
    case = Case("a", "Tests.a", str(tmp_path / "dies.dll"), '{"uid": "a"}')
    outcome = await programs.run(3, [case], 60)
    assert str(outcome.fault).startswith("exit code 134: Stack overflow. at Shop.Cart.Depth at")
    assert len(str(outcome.fault)) < 1000


async def test_a_program_that_does_not_connect_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(HostsUnavailable, match=r"it did not connect \(no port\)"):
        await Link.start("it", lambda port: ["sh", "-c", "echo no port >&2"], tmp_path, {})
    assert len(asyncio.all_tasks()) == 1


# When a second run is needed to believe a time limit.


LIMIT_S = 0.2


def computing(share: float) -> Callable[[], ThreadTimes]:
    """A thread that gets a share of a processor, beside one that only waits."""
    begun = time.monotonic()
    return lambda: {(1, 1): 0.0, (2, 2): share * (time.monotonic() - begun)}


async def ended(share: float) -> bool:
    with pytest.raises(OutOfTime) as late:
        await within(LIMIT_S, asyncio.sleep(60), computing(share))
    return late.value.computed


async def test_what_computes_all_the_time_is_out_of_time_for_certain() -> None:
    assert await ended(1.0)
    assert await ended(0.9)


async def test_what_waits_or_gets_no_processor_is_to_be_tested_again() -> None:
    assert not await ended(0.0)
    assert not await ended(0.3)


async def test_what_ends_in_time_is_returned_and_its_errors_are_raised() -> None:
    async def failing() -> None:
        raise ValueError("the console has ended")

    assert await within(60, asyncio.sleep(0, "done"), computing(1.0)) == "done"
    with pytest.raises(ValueError, match="the console has ended"):
        await within(60, failing(), computing(1.0))


async def test_what_is_cancelled_at_once_has_ended() -> None:
    run = asyncio.sleep(60)
    waiting = asyncio.create_task(within(60, run, computing(0.0)))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert inspect.getcoroutinestate(run) == inspect.CORO_CLOSED


async def test_what_ends_while_it_gets_the_rest_of_its_time_is_returned() -> None:
    ends, limit_s = asyncio.Event(), 2.0

    def looked() -> ThreadTimes:
        if time.monotonic() > begun + limit_s:
            loop.call_soon_threadsafe(ends.set)
        return {(2, 2): 0.7 * (time.monotonic() - begun)}

    begun, loop = time.monotonic(), asyncio.get_running_loop()
    assert await within(limit_s, ends.wait(), looked)


async def test_the_times_are_those_of_the_threads_of_a_tool() -> None:
    computes = (
        "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\nwhile True: pass"
    )
    async with ProcessTree.running([sys.executable, "-c", computes], cwd=Path.cwd()) as tree:
        while max(tree.thread_times().values(), default=0.0) < 0.2:
            await asyncio.sleep(0.05)
        assert sum(seconds < 0.2 for seconds in tree.thread_times().values()) >= 1
    assert tree.thread_times() == {}
