"""The fork server: a process for the next job is forked ahead, and is used only if it is as good as a new one."""

from pathlib import Path

import pytest
from support import programs

PRELUDE = """
import os, signal, sys, time
from msp_bridge.python_engine.programs.fork_server import ForkServer
from msp_bridge.python_engine.programs.forked import Forked
from msp_bridge.python_engine.programs.server_process import ServerProcess
from msp_bridge.isolation.process_namespace import ProcessNamespace

STATE = ["first"]


class World:
    '''Of process namespaces alone, and without these for jobs that share it.'''

    processes = frozenset()
    undone = 0  # how often what a job may have written was undone

    def fork(self, parts):
        if "shared" in parts:
            return os.fork(), None
        namespace = ProcessNamespace()
        pid = namespace.fork()
        if pid == 0:
            namespace.close()
        return pid, namespace

    def enter(self, scratch, parts):
        self.entered = os.readlink("/proc/thread-self")

    edit, ahead, place, made = None, None, "", ()

    def read_ahead(self, edit):
        self.ahead = edit

    def put(self, edit):
        if edit.replacement == "refused":
            raise OSError("no room")
        self.edit = edit

    def shares_memory(self):
        return False

    def after_job(self, pid, namespace, *, undo):
        self.undone += undo
        if namespace is not None:
            namespace.end()

    def keep_free(self, count):
        pass


try:
    ProcessNamespace().end()
except OSError as error:
    print("refused:", error)
    sys.exit()
world = World()


def serve(channel):
    def handle(message):
        STATE.append(message["state"])
        return {"children": len(children(os.getpid())), "undone": world.undone}

    def work(job):
        if job.message.get("ends"):
            os._exit(9)
        if job.message.get("fails"):
            return {"report": print}  # which can't be sent
        if job.message.get("hangs"):
            signal.pause()
        if job.message.get("forks") and os.fork():
            return {"state": os.waitstatus_to_exitcode(os.wait()[1])}
        if job.message.get("forks"):
            job.tell({"state": "a piece of the process that it forks"})
            return {"state": "the process that it forks", "failure": ["test", "failed"]}
        if job.message.get("leaves") and os.fork():
            signal.pause()
        if job.message.get("leaves") and os.fork():
            os._exit(0)
        if job.message.get("orphan"):
            orphan()
        for _ in range(job.message.get("turns", 0)):
            end = time.process_time() + 0.1
            while time.process_time() < end:
                pass
            job.ended.note()
        while job.message.get("spins"):
            pass
        read = [edit and edit.replacement for edit in (world.edit, world.ahead)]
        return {"state": STATE[-1], "replacements": read, "parts": job.message["parts"]}

    job = ForkServer(channel, world, handle).serve()
    job.end(work(job))


def started():
    server = ServerProcess(sys.argv[1] + "/log")
    try:
        server.fork(serve, [])
        return server
    except Forked as forked:
        forked.serve()
        os._exit(70)


def children(pid):
    '''But for the first ones of process namespaces.'''
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(child) for child in file.read().split() if number_within(child) != "1"]


def number_within(pid):
    '''That it has in its namespace.'''
    try:
        with open(f"/proc/{pid}/status") as file:
            return next((line.split()[-1] for line in file if line.startswith("NSpid")), None)
    except OSError:
        return None


server = started()


def send(**message):
    server.channel.send({"do": "run", "limit": 300, "parts": ["overlay"], **message})


def answer():
    return next(server.channel.messages())


def ran(**message):
    send(**message)
    answered = answer()
    return answered["report"] if answered["report"] is not None else answered["exit"]


def waiting():
    '''The process that waits, as soon as nothing else is there.'''
    before = []
    while len(found := children(server.pid)) != 1 or found != before:  # read while one is reaped, the list may lack another
        before = found
    return found[0]


def state(pid):
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0]

"""


def printed(code: str, directory: Path) -> list[str]:
    """What a process of its own prints: a world needs one with a single thread."""
    return programs.printed(programs.ORPHAN + PRELUDE + code + "\nserver.end()", str(directory))


def test_the_next_job_is_run_by_the_process_that_waits(tmp_path):
    code = """
ran(id=1)
first = waiting()
send(id=2, edit=["a.py", "", 0, 0, "a"])
print(answer()["report"]["replacements"])
print(waiting() != first)
print(ran(id=3, edit=["a.py", "", 0, 0, "b"])["replacements"])
"""
    assert printed(code, tmp_path) == ["['a', None]", "True", "['b', 'a']"]


def test_what_changes_the_server_is_seen_by_the_next_job(tmp_path):
    code = """
print(ran(id=1)["state"])
waiting()
server.channel.send({"do": "reload", "state": "second"})
print(answer())
print(ran(id=2)["state"])
"""
    assert printed(code, tmp_path) == ["first", "{'children': 0, 'undone': 1}", "second"]


def test_changed_files_end_the_process_that_waits_and_nothing_of_them_is_undone(tmp_path):
    code = """
ran(id=1)
before = waiting()
server.channel.send({"do": "renew"})
server.channel.send({"do": "look", "state": "second"})
print(answer())
"""
    assert printed(code, tmp_path) == ["{'children': 0, 'undone': 1}"]


WAYS = pytest.mark.parametrize("parts", [["overlay"], ["shared"]], ids=["isolated", "portable"])


@WAYS
def test_a_job_that_takes_too_much_cpu_time_is_ended_and_one_that_waits_is_not(tmp_path, parts):
    code = f"""
send(id=1, parts={parts}, spins=True, cpu_limits=[0.1])
print(answer()["kill_reason"])
send(id=2, parts={parts}, hangs=True, cpu_limits=[0.1])
send(id=3, parts={parts}, spins=True, cpu_limits=[0.3])
print([(answered["id"], answered["kill_reason"]) for answered in [answer()]])
"""
    assert printed(code, tmp_path) == ["timeout", "[(3, 'timeout')]"]


@WAYS
def test_the_cpu_time_of_a_job_is_also_that_of_what_it_has_left_running(tmp_path, parts):
    code = f"""
send(id=1, parts={parts}, leaves=True, spins=True, cpu_limits=[0.2])
print(answer()["kill_reason"])
"""
    assert printed(code, tmp_path) == ["timeout"]


@WAYS
def test_an_orphan_is_reaped_while_the_job_runs(tmp_path, parts):
    assert printed(f"print(ran(id=1, parts={parts}, orphan=True)['state'])", tmp_path) == ["first"]


def test_the_limit_of_cpu_time_is_that_of_each_test(tmp_path):
    code = """
send(id=1, turns=8, cpu_limits=[0.4])
ended = answer()
print(ended["kill_reason"], ended["tests"])
send(id=2, turns=2, spins=True, cpu_limits=[0.4])
ended = answer()
print(ended["kill_reason"], ended["tests"])
"""
    assert printed(code, tmp_path) == [" 8", "timeout 2"]


def test_the_test_that_runs_has_a_limit_of_its_own(tmp_path):
    code = """
send(id=1, turns=2, spins=True, cpu_limits=[600, 600, 0.4], test_limits=[600])
ended = answer()
print(ended["kill_reason"], ended["tests"])
send(id=2, hangs=True, test_limits=[0.4, 600], cpu_limits=[600])
ended = answer()
print(ended["kill_reason"], ended["tests"])
"""
    assert printed(code, tmp_path) == ["timeout 2", "timeout 0"]


def test_a_job_that_waits_is_ended_when_the_test_that_runs_is_over_its_limit_by_the_clock(tmp_path):
    code = """
send(id=1, turns=3, hangs=True, test_limits=[0.8], cpu_limits=[60])
ended = answer()
print(ended["kill_reason"], ended["tests"])
send(id=2, turns=8, test_limits=[60], cpu_limits=[60])
ended = answer()
print(ended["kill_reason"], ended["tests"])
"""
    assert printed(code, tmp_path) == ["timeout 0", " 8"]


def test_a_job_with_other_parts_gets_a_process_of_its_own(tmp_path):
    code = """
ran(id=1)
waiting()
print(ran(id=2, parts=["overlay", "net"])["parts"])
"""
    assert printed(code, tmp_path) == ["['overlay', 'net']"]


def test_a_process_that_waits_and_is_killed_costs_no_job(tmp_path):
    code = """
for number in range(1, 9):
    print(ran(id=number)["state"])
    os.kill(pid := waiting(), signal.SIGKILL)
    while state(pid) != "Z":
        pass
"""
    assert printed(code, tmp_path) == ["first"] * 8


def test_a_job_that_ends_itself_is_answered_with_its_exit_code(tmp_path):
    code = """
print(ran(id=1, ends=True))
print(ran(id=2, ends=True))
print(ran(id=3)["state"])
"""
    assert printed(code, tmp_path) == ["9", "9", "first"]


def test_a_fault_of_our_own_is_told_from_an_exit_and_says_whether_the_job_had_begun(tmp_path):
    code = """
for faulty in ({"fails": True}, {"edit": ["a.py", "", 0, 0, "refused"]}):
    report = ran(id=1, **faulty)
    print(report["fault"].partition(" (")[0], report["begun"])
print(ran(id=2)["state"])
"""
    assert printed(code, tmp_path) == [
        "TypeError: Object of type builtin_function_or_method is not JSON serializable True",
        "OSError: no room False",
        "first",
    ]


def test_nothing_is_forked_ahead_where_jobs_share_the_sandbox(tmp_path):
    code = """
ran(id=1, parts=["pid"])
server.channel.send({"do": "look", "state": "second"})
print(answer())
"""
    assert printed(code, tmp_path) == ["{'children': 0, 'undone': 1}"]


def test_a_process_that_a_test_forks_and_that_goes_on_does_not_report(tmp_path):
    """It ends as pytest would there: its exit code says that a test failed."""
    assert printed("print(ran(id=1, forks=True)['state'])", tmp_path) == ["1"]


def test_a_stop_leaves_no_process(tmp_path):
    code = """
ran(id=1)
waiting()
send(id=2, hangs=True)
server.channel.send({"do": "stop", "ids": [2]})
print(answer()["kill_reason"], children(server.pid))
"""
    assert printed(code, tmp_path) == ["stopped []"]


def test_a_process_that_waits_does_not_wait_for_ever(tmp_path):
    code = """
from msp_bridge.python_engine.programs import job_process
server.end()
job_process.WAITING_S = 0.5
server = started()
print(ran(id=1)["state"])
waiting()
while children(server.pid):
    pass
print(ran(id=2)["state"])
"""
    assert printed(code, tmp_path) == ["first", "first"]


def test_the_end_of_the_host_ends_the_process_that_waits(tmp_path):
    code = """
ran(id=1)
pid = waiting()
server.end()
print(os.path.exists(f"/proc/{pid}"), flush=True)
os._exit(0)
"""
    assert printed(code, tmp_path) == ["False"]
