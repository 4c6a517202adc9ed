"""Event loops that an import has made: whether each fork can have descriptors of its own, and has them."""

import asyncio
import os
import selectors
import subprocess
import sys

from msp_bridge.python_engine.programs.event_loops import descriptors, idle_loops
from msp_bridge.python_engine.programs.imports import _shared_with_forks

IN_A_FORK = """
import asyncio, os, threading
from msp_bridge.python_engine.programs.event_loops import descriptors, idle_loops, renew

loop = asyncio.new_event_loop()
[found] = idle_loops()
assert found is loop
ours = [os.fstat(number).st_ino for number in (loop._ssock.fileno(), loop._csock.fileno())]


def is_woken():
    done = loop.create_future()
    threading.Timer(0.01, loop.call_soon_threadsafe, (done.set_result, True)).start()
    return loop.run_until_complete(asyncio.wait_for(done, 60))


if not (child := os.fork()):
    renew(loop)
    flags = [(os.get_blocking(number), os.get_inheritable(number)) for number in descriptors(loop)[:2]]
    theirs = [os.fstat(number).st_ino for number in descriptors(loop)[:2]]
    loop.add_reader(os.pipe()[0], print)  # shared, the loop of the parent would watch it, too
    os._exit(0 if is_woken() and flags == [(False, False)] * 2 and not {*ours} & {*theirs} else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
epoll = open(f"/proc/self/fdinfo/{loop._selector.fileno()}").read()
assert epoll.count("tfd:") == 1, epoll
assert is_woken()
"""


def test_a_fork_wakes_its_own_loop_alone() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", IN_A_FORK], capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_loop_that_waits_shares_nothing_but_what_a_job_has_anew() -> None:
    before = _shared_with_forks(files=False), _shared_with_forks(files=True)
    loop = asyncio.new_event_loop()
    try:
        assert _shared_with_forks(files=False) == before[0]
        assert _shared_with_forks(files=True) > before[1]
    finally:
        loop.close()


def test_a_loop_that_watches_something_else_is_not_one_of_them() -> None:
    loop = asyncio.new_event_loop()
    reader, writer = os.pipe()
    try:
        assert loop in idle_loops()
        assert len(set(descriptors(loop))) == 3
        loop.add_reader(reader, print)
        assert loop not in idle_loops()
        loop.remove_reader(reader)
        assert loop in idle_loops()
    finally:
        loop.close()
        os.close(reader)
        os.close(writer)
    assert loop not in idle_loops()


class Pretended(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        """A stand-in, as tests have it: it lacks what a loop has."""


def test_what_is_no_whole_loop_is_not_one_of_them() -> None:
    pretended, other = Pretended(), asyncio.SelectorEventLoop(selectors.SelectSelector())
    try:
        assert not {pretended, other} & {*idle_loops()}
    finally:
        other.close()
        pretended._closed = True  # or it complains at its end


async def test_a_loop_that_runs_is_not_one_of_them() -> None:
    assert asyncio.get_running_loop() not in idle_loops()
