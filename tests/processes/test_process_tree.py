"""No process outlives the tree that it belongs to, and no tree writes faster than it is read."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest
from support.strays import TOOLS, gone, marked, may_make_pid_namespaces, new_mark, tool

from msp_bridge.errors import ToolError
from msp_bridge.processes import ProcessTree
from msp_bridge.processes.tree import GRACE_S

SLEEP = "time.sleep(600)"
GRACE = 0.2  # s; the strays of these tests ignore SIGTERM


@pytest.fixture
def mark() -> str:
    return new_mark()


async def first_line(tree: ProcessTree) -> bytes:
    async with contextlib.aclosing(tree.lines()) as lines:
        return await anext(lines)


async def all_lines(tree: ProcessTree) -> list[bytes]:
    async with contextlib.aclosing(tree.lines()) as lines:
        return [line async for line in lines]


async def ready(command: list[str], cwd: Path, grace: float = GRACE, **options: bool) -> ProcessTree:
    """A tree whose tool has said that it is ready."""
    tree = await ProcessTree.start(command, cwd=cwd, grace=grace, **options)
    await first_line(tree)
    return tree


def python(code: str, *arguments: str) -> list[str]:
    return [sys.executable, "-c", code, *arguments]


@pytest.mark.parametrize("kind", TOOLS)
async def test_ending_a_tree_ends_every_descendant(kind: str, mark: str, tmp_path: Path) -> None:
    tree = await ready(tool(kind, mark, SLEEP), tmp_path)
    assert len(marked(mark)) > 1
    await tree.end()
    assert marked(mark) == []


@pytest.mark.parametrize("kind", TOOLS)
async def test_what_a_tool_leaves_behind_ends_with_it(kind: str, mark: str, tmp_path: Path) -> None:
    async with ProcessTree.running(tool(kind, mark, "sys.exit(3)"), cwd=tmp_path, grace=GRACE) as tree:
        assert await all_lines(tree) == [b"ready"]  # though the stray holds stdout
        assert await tree.exited() == 3
        assert marked(mark) == []


@contextlib.asynccontextmanager
async def killable_bridge(kind: str, mark: str, cwd: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    program = Path(__file__).parents[1] / "support" / "bridge_to_be_killed.py"
    bridge = await asyncio.create_subprocess_exec(sys.executable, program, kind, mark, cwd=cwd, stdout=subprocess.PIPE)
    assert bridge.stdout is not None
    assert await bridge.stdout.readline() == b"ready\n"
    try:
        yield bridge
    finally:
        if bridge.returncode is None:
            bridge.kill()
        await bridge.wait()


@pytest.mark.parametrize("kind", TOOLS)
async def test_a_killed_bridge_takes_its_tools_along(kind: str, mark: str, tmp_path: Path) -> None:
    async with killable_bridge(kind, mark, tmp_path) as bridge:
        bridge.kill()
        assert await gone(mark)


def supervisors(tree: ProcessTree) -> dict[str, int]:
    """The process ids of the two that watch over the tool."""
    return {"guard": tree.pid, "supervisor": psutil.Process(tree.pid).children()[0].pid}


def tool_of(supervisor: int) -> psutil.Process:
    """The tool; where it has a PID namespace, number 1 of that is between the two."""
    (below,) = psutil.Process(supervisor).children()
    if os.readlink(f"/proc/{below.pid}/ns/pid") != os.readlink("/proc/self/ns/pid") and "supervisor" in str(
        below.cmdline()
    ):
        (below,) = below.children()
    return below


@pytest.mark.parametrize("who", ["guard", "supervisor"])
@pytest.mark.parametrize("kind", TOOLS)
async def test_the_other_one_ends_everything_when_one_is_killed(kind: str, who: str, mark: str, tmp_path: Path) -> None:
    tree = await ready(tool(kind, mark, SLEEP), tmp_path)
    os.kill(supervisors(tree)[who], signal.SIGKILL)
    assert await tree.exited() < 0
    assert marked(mark) == []


@pytest.mark.parametrize("kind", ["child", "stubborn child", "daemon"])
async def test_the_bridge_ends_everything_when_both_are_killed(kind: str, mark: str, tmp_path: Path) -> None:
    tree = await ready(tool(kind, mark, SLEEP), tmp_path)
    os.killpg(tree.pid, signal.SIGKILL)
    assert await tree.exited() == -signal.SIGKILL
    assert marked(mark) == []


@pytest.mark.parametrize("who", ["guard", "supervisor"])
@pytest.mark.parametrize("kind", TOOLS)
async def test_a_supervisor_killed_with_its_bridge_leaves_nothing(
    kind: str, who: str, mark: str, tmp_path: Path
) -> None:
    async with killable_bridge(kind, mark, tmp_path) as bridge:
        below = psutil.Process(bridge.pid).children()
        guard = below[0]
        victim = guard if who == "guard" else guard.children()[0]
        for process in (victim, psutil.Process(bridge.pid)):
            process.kill()
        assert await gone(mark)


@pytest.mark.skipif(not may_make_pid_namespaces(), reason="PID namespaces are not permitted")
@pytest.mark.parametrize("kind", TOOLS)
async def test_guard_supervisor_and_bridge_killed_at_once_leave_nothing(kind: str, mark: str, tmp_path: Path) -> None:
    async with killable_bridge(kind, mark, tmp_path) as bridge:
        (guard,) = psutil.Process(bridge.pid).children()
        victims = [bridge.pid, guard.pid, guard.children()[0].pid]
        for pid in victims:
            os.kill(pid, signal.SIGSTOP)  # so that none sees the end of another
        for pid in victims:
            os.kill(pid, signal.SIGKILL)
        assert await gone(mark)


@pytest.mark.parametrize("namespace", [True, False])
async def test_a_tool_without_a_pid_namespace_knows_other_processes(namespace: bool, tmp_path: Path) -> None:
    code = "import os, sys; print(os.path.exists('/proc/' + sys.argv[1]), os.getpid() > 100)"
    command = python(code, str(os.getpid()))
    async with ProcessTree.running(command, cwd=tmp_path, pid_namespace=namespace) as tree:
        alone = namespace and may_make_pid_namespaces()
        assert await all_lines(tree) == [f"{not alone} True".encode()]
        assert await tree.exited() == 0


@pytest.mark.parametrize("kind", ["child", "daemon"])
async def test_without_a_pid_namespace_every_descendant_ends_too(kind: str, mark: str, tmp_path: Path) -> None:
    tree = await ready(tool(kind, mark, SLEEP), tmp_path, pid_namespace=False)
    await tree.end()
    assert marked(mark) == []


STOPPED = ["tool", "child", "supervisor", "guard", "all"]


@pytest.mark.parametrize("who", STOPPED)
async def test_a_tree_with_stopped_processes_ends_within_two_seconds(who: str, mark: str, tmp_path: Path) -> None:
    tree = await ready(tool("child", mark, SLEEP), tmp_path, grace=GRACE_S)
    guard, supervisor = supervisors(tree).values()
    started = tool_of(supervisor)
    (child,) = started.children()
    victims = {"tool": [started.pid], "child": [child.pid], "supervisor": [supervisor], "guard": [guard]}
    for pid in victims.get(who) or [child.pid, started.pid, guard, supervisor]:
        os.kill(pid, signal.SIGSTOP)
    async with asyncio.timeout(2):
        await tree.end()
    assert marked(mark) == []


async def test_a_tool_that_stops_itself_whenever_it_can_is_ended(mark: str, tmp_path: Path) -> None:
    stop = "signal.signal(signal.SIGCONT, lambda *_: os.kill(os.getpid(), signal.SIGSTOP))\n"
    ignore = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    code = f"import os, signal, time\n{ignore}{stop}print('ready', flush=True)\nos.kill(os.getpid(), signal.SIGSTOP)"
    tree = await ready(python(f"{code}\n{SLEEP}", mark), tmp_path)
    async with asyncio.timeout(2):
        await tree.end()
    assert marked(mark) == []


@pytest.mark.parametrize("way", ["read", "stop"])
async def test_the_end_does_not_wait_for_a_tool_that_reads_nothing(way: str, mark: str, tmp_path: Path) -> None:
    code = f"import os, signal, time\nprint('ready', flush=True)\n{'os.kill(os.getpid(), 19)' if way == 'stop' else ''}"
    tree = await ready(python(f"{code}\n{SLEEP}", mark), tmp_path, grace=GRACE_S, stdin=True)
    writing = asyncio.create_task(tree.write(b"x" * 10_000_000))
    await asyncio.sleep(0.1)
    assert not writing.done()
    async with asyncio.timeout(2):
        await tree.end()
    with pytest.raises(ToolError):
        await writing
    assert marked(mark) == []


CHAIN = """
import os, sys, time, signal
def end_soon(n): os._exit(0)
os.write(1, b"ready\\n")
deadline = time.monotonic() + 60
while time.monotonic() < deadline:
    if os.fork():
        os._exit(0)
    {step}
"""
CHAINS = {
    "one group": "pass",
    "groups of their own": "os.setpgid(0, 0)",
    "sessions of their own": "os.setsid()",
    "slow": "time.sleep(0.002)",
}


@pytest.mark.parametrize("step", CHAINS)
async def test_a_chain_that_forks_and_exits_without_end_is_ended(step: str, mark: str, tmp_path: Path) -> None:
    code = CHAIN.replace("{step}", CHAINS[step])
    starter = f"import os, subprocess, sys, time\nsubprocess.Popen([sys.executable, '-c', {code!r}, {mark!r}])\n{SLEEP}"
    tree = await ready(python(starter), tmp_path)
    await asyncio.sleep(0.2)
    async with asyncio.timeout(60):
        await tree.end()
    assert await stays_gone(mark)


async def stays_gone(mark: str) -> bool:
    """A chain is rarely caught in the act: so look several times."""
    for _ in range(20):
        if marked(mark):
            return False
        await asyncio.sleep(0.01)
    return True


async def test_a_cancel_during_the_end_still_ends_everything(mark: str, tmp_path: Path) -> None:
    tree = await ready(tool("daemon", mark, SLEEP), tmp_path)
    ending = asyncio.create_task(tree.end())
    await asyncio.sleep(0)
    ending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await ending
    assert marked(mark) == []


@pytest.mark.parametrize("steps", range(12))
async def test_a_cancel_during_the_start_leaves_nothing(steps: int, mark: str, tmp_path: Path) -> None:
    starting = asyncio.create_task(ProcessTree.start(tool("child", mark, SLEEP), cwd=tmp_path, grace=GRACE))
    for _ in range(steps):
        await asyncio.sleep(0)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert marked(mark) == []


async def test_many_trees_at_once_end_apart(tmp_path: Path) -> None:
    marks = [new_mark() for _ in range(6)]
    trees = await asyncio.gather(
        *(ProcessTree.start(tool("daemon", mark, SLEEP), cwd=tmp_path, grace=GRACE) for mark in marks)
    )
    await asyncio.gather(*(first_line(tree) for tree in trees))
    await trees[0].end()
    assert marked(marks[0]) == []
    assert all(marked(mark) for mark in marks[1:])
    await asyncio.gather(*(tree.end() for tree in trees))
    assert not any(marked(mark) for mark in marks)


async def test_a_tool_that_is_not_read_waits(tmp_path: Path) -> None:
    count = tmp_path / "count"
    flood = "import sys\nfor n in range(10**6):\n print('x' * 1000, flush=True)\n open(sys.argv[1], 'w').write(str(n))"
    before = psutil.Process().memory_info().rss
    async with ProcessTree.running(python(flood, str(count)), cwd=tmp_path) as tree:
        await first_line(tree)
        written = -1
        while (now := int(count.read_text() or 0) if count.exists() else -2) != written:  # until it writes no more
            written = now
            await asyncio.sleep(0.3)
        assert written < 10_000
        assert psutil.Process().memory_info().rss - before < 50_000_000


async def test_stdin_reaches_the_tool_and_its_end_as_well(tmp_path: Path) -> None:
    async with ProcessTree.running(["cat"], cwd=tmp_path, stdin=True) as tree:
        await tree.write(b"one\ntwo\r\n")
        async with contextlib.aclosing(tree.lines()) as lines:
            assert [await anext(lines), await anext(lines)] == [b"one", b"two"]


async def test_writing_to_a_tool_that_is_gone_says_what_it_said(tmp_path: Path) -> None:
    async with ProcessTree.running(python("import sys; sys.exit('no such option')"), cwd=tmp_path, stdin=True) as tree:
        await tree.exited()
        with pytest.raises(ToolError, match="no such option"):
            await tree.write(b"x" * 1_000_000)


async def test_without_stdin_a_tool_reads_nothing(tmp_path: Path) -> None:
    async with ProcessTree.running(["cat"], cwd=tmp_path) as tree:
        assert await all_lines(tree) == []
        assert await tree.exited() == 0


@pytest.mark.parametrize(("code", "expected"), [("pass", 0), ("raise SystemExit(200)", 200)])
async def test_the_exit_code_is_the_tools_own(code: str, expected: int, tmp_path: Path) -> None:
    async with ProcessTree.running(python(code), cwd=tmp_path) as tree:
        assert await tree.exited() == expected
        assert tree.returncode == expected


async def test_a_signal_is_a_negative_exit_code(tmp_path: Path) -> None:
    async with ProcessTree.running(python("import os; os.abort()"), cwd=tmp_path) as tree:
        assert await tree.exited() == -signal.SIGABRT


async def test_both_ends_of_stderr_are_remembered(tmp_path: Path) -> None:
    code = "import sys; sys.stderr.write('it begins' + 'x' * 10**6 + 'the end \\u00e9\\n')"
    async with ProcessTree.running(python(code), cwd=tmp_path, env={"PYTHONIOENCODING": "utf-8"}) as tree:
        await tree.exited()
        assert tree.errors.endswith("the end \u00e9\n")
        assert tree.first_errors.startswith("it begins")
        assert len(tree.both_errors) < 20_000


async def test_the_environment_is_ours_with_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEPT", "1")
    monkeypatch.setenv("GONE", "2")
    code = "import os; print(os.environ.get('KEPT'), os.environ.get('GONE'), os.environ.get('NEW'))"
    async with ProcessTree.running(python(code), cwd=tmp_path, env={"GONE": None, "NEW": "3"}) as tree:
        assert await all_lines(tree) == [b"1 None 3"]


async def test_a_missing_program_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="can't run no-such-tool: there is no such program: install it"):
        await ProcessTree.start(["no-such-tool"], cwd=tmp_path)


async def test_a_missing_directory_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="there is no such directory"):
        await ProcessTree.start(["cat"], cwd=tmp_path / "gone")


async def test_a_last_line_needs_no_line_end(tmp_path: Path) -> None:
    async with ProcessTree.running(python("print('a\\n\\nb', end='')"), cwd=tmp_path) as tree:
        assert await all_lines(tree) == [b"a", b"", b"b"]


async def test_a_line_may_be_long(tmp_path: Path) -> None:
    async with ProcessTree.running(python("print('x' * 3_000_000)"), cwd=tmp_path) as tree:
        assert [len(line) for line in await all_lines(tree)] == [3_000_000]


async def test_a_line_without_end_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("msp_bridge.processes.supervised.MAX_LINE", 1_000_000)
    async with ProcessTree.running(python("while True: print('x' * 100_000, end='')"), cwd=tmp_path) as tree:
        with pytest.raises(ToolError, match="a line of more than 1000000 bytes"):
            await all_lines(tree)


async def test_descriptors_do_not_leak(tmp_path: Path) -> None:
    async def one() -> None:
        async with ProcessTree.running(python("print('x' * 10**6)"), cwd=tmp_path, stdin=True) as tree:
            await first_line(tree)

    await one()
    before = psutil.Process().num_fds()
    for _ in range(5):
        await one()
    await asyncio.sleep(0)
    assert psutil.Process().num_fds() <= before


async def test_a_program_that_the_system_can_not_run_says_why(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    async with ProcessTree.running([script], cwd=tmp_path) as tree:
        assert await tree.exited() == 127
        assert tree.errors == f"can't run {script}: No such file or directory\n"
