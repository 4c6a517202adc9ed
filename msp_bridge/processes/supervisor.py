"""The supervisor: two small processes between the bridge and one tool, which outlive both until nothing is left.

Run by `python -I -S -c BOOT LIFELINE RUN_ID GRACE SITE NAMESPACE -- ARGV…`: a module's bytecode is cached, a script's
isn't.

Theory of operation
-------------------
The problem. A tool starts processes that start processes. They may ignore SIGTERM, start a session of their own, fork
twice so that their parent is gone, clear their environment, stop themselves, or fork and exit without end. The bridge
may be killed by SIGKILL, and so may the supervisor. Nothing may survive, and an end that the user waits for takes a
second.

The processes. bridge - *guard* - *supervisor* - tool. The guard is the process that the bridge starts; it forks the
supervisor and waits for it. The supervisor starts the tool. Both hold the *lifeline*, one end of a socket. The other
end is the bridge's alone.

The states of a supervisor.

1. *Watching*: until the tool exits, or until the lifeline ends: the bridge wants the end, or is gone.
2. *Terminating*: each descendant gets SIGTERM, and SIGCONT so that a stopped one acts on it; for at most GRACE seconds.
3. *Killing*: each descendant gets SIGKILL until none is left, at most `KILL_TIMEOUT_S`: a process in uninterruptible
   sleep on a dead network file system can't be ended by anybody.
4. *Reporting*: `status N` on the lifeline, the tool's exit code. It is the last thing: nothing is left then.

Why nothing escapes (Linux).

- The supervisor is a "child subreaper": an orphan becomes its child, however it was started. So the tree below it is
  complete, and "no children" (ECHILD) is an exact end, without the cost of a look at every process of the machine.
- Fork-and-exit chains: a list of processes is out of date when it is read. So the supervisor kills its direct
  children in a tight loop: each link of a chain becomes its direct child when the link before it exits. A process
  group is killed as a whole, which the kernel does atomically: no fork gets out of it. Where a cgroup (v2) can be
  made, all of it is killed at once, sessions or not.
- The supervisor is killed: the kernel kills the tool (parent-death signal). The guard is a subreaper, too: what is
  left becomes its child, and it ends it. The guard is killed: the supervisor gets a signal and ends the tool.
- Guard, supervisor and bridge are killed at once: where a PID namespace is permitted (`number_one`), the kernel ends
  everything. Elsewhere what has a session of its own stays.
- A stopped supervisor is continued by the guard, and both by the bridge (`supervised.py`).

Elsewhere (macOS) there is no subreaper: `sweep` finds descendants by their parents, and by RUN_ID in their
environment. A process that leaves both behind escapes.
"""

from __future__ import annotations

# Each import costs milliseconds whenever a tool starts. `_signal` is `signal` without `enum`, which takes more than
# all the rest; `contextlib` is as slow.
import _signal as signal  # type: ignore[import-not-found,unused-ignore]
import os
import select
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
POLL_S = 0.02  # between two looks at processes that got SIGTERM, if none ends meanwhile
KILL_TIMEOUT_S = 5.0
HERE = os.path.dirname(os.path.abspath(__file__))
BOOT = f"import sys; sys.path.append({HERE!r}); import supervisor; supervisor.main(sys.argv[1:])"


class Supervisor:
    """One tool's guard and supervisor: `run` is both."""

    def __init__(self, lifeline: int, run_id: str, grace: float, site: str, *, namespace: bool) -> None:
        self._lifeline, self._run_id, self._grace, self._site = lifeline, run_id, grace, site
        self._namespace = namespace  # a PID namespace for the tool, where it is permitted
        self._tool = 0  # or number 1 of its namespace
        self._end_of_tool = -1  # a pipe of number 1
        self._wake: list[int] = []  # a pipe that a signal writes to
        self._status: int | None = None
        self._cgroup = Cgroup.create(run_id)

    def run(self, argv: list[str]) -> None:
        """Run `argv` to its end, or to the lifeline's."""
        os.set_inheritable(self._lifeline, False)
        for number in _ending_signals():
            signal.signal(number, signal.SIG_IGN)
        self._exact = _prctl(PR_SET_CHILD_SUBREAPER, 1)
        supervisor = os.fork()
        if supervisor == 0:
            _prctl(PR_SET_CHILD_SUBREAPER, 1)  # a fork doesn't inherit it
            _prctl(PR_SET_PDEATHSIG, signal.SIGUSR1)
            self._supervise(argv)
            return
        _release_streams()
        self._guard(supervisor)

    def _guard(self, supervisor: int) -> None:
        while True:
            _, status = os.waitpid(supervisor, os.WUNTRACED)
            if not os.WIFSTOPPED(status):
                break
            os.kill(supervisor, signal.SIGCONT)
        if os.WIFSIGNALED(status):  # killed: its work is left to us
            self._end_descendants()
            self._report()

    def _supervise(self, argv: list[str]) -> None:
        wake, sleep = os.pipe()
        os.set_blocking(sleep, False)
        for number in (signal.SIGCHLD, signal.SIGUSR1):
            signal.signal(number, lambda *_: None)
        signal.set_wakeup_fd(sleep, warn_on_full_buffer=False)
        self._wake = [wake]
        self._tool = self._spawn(argv)
        _release_streams()
        while self._status is None:
            pipes = [wake] if self._end_of_tool < 0 else [wake, self._end_of_tool]
            ready, _, _ = select.select([self._lifeline, *pipes], [], [])
            if self._lifeline in ready:
                break  # the bridge wants the end, or is gone
            if self._end_of_tool in ready:
                self._take_status()
                break
            if signal.SIGUSR1 in os.read(wake, 4096):
                break  # the guard was killed
            self._reap()
        self._end_descendants()
        self._report()

    def _take_status(self) -> None:
        """Take the status of the tool from number 1."""
        import number_one  # type: ignore[import-not-found,unused-ignore]

        status = number_one.status(self._end_of_tool)
        self._status = -signal.SIGKILL if status is None else os.waitstatus_to_exitcode(status)

    def _spawn(self, argv: list[str]) -> int:
        if self._namespace and sys.platform == "linux" and os.geteuid() == 0:
            import number_one  # type: ignore[import-not-found,unused-ignore]  # beside this file

            started = number_one.start(self._become_number_one, lambda: self._become_tool(argv))
            if started is not None:
                number, self._end_of_tool = started
                return int(number)
        supervisor = os.getpid()
        pid = os.fork()
        if pid == 0:
            _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != supervisor:  # it died before the line above could see it
                os._exit(127)
            self._become_tool(argv)
        return pid

    def _become_number_one(self) -> None:
        """The end of the supervisor is its end, which is that of all in the namespace."""
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGUSR1):
            signal.signal(number, signal.SIG_DFL)
        os.close(self._lifeline)

    def _become_tool(self, argv: list[str]) -> NoReturn:
        try:
            for number in (*_ending_signals(), signal.SIGCHLD, signal.SIGUSR1):
                signal.signal(number, signal.SIG_DFL)
            os.setpgid(0, 0)  # so that its group can be killed without the supervisor
            self._cgroup.enter()
            os.execvp(argv[0], argv)
        except OSError as error:
            os.write(2, f"can't run {argv[0]}: {error.strerror}\n".encode("utf-8", "surrogateescape"))
        os._exit(127)

    def _end_descendants(self) -> None:
        if self._exact:
            self._end_children()
        else:
            sys.path.append(self._site)
            import sweep  # type: ignore[import-not-found,unused-ignore]  # beside this file; needs psutil

            sweep.end(self._run_id, os.getpid(), self._grace, self._reap)
        self._reap()
        if self._end_of_tool >= 0 and self._status is None:
            self._take_status()
        self._cgroup.delete()

    def _end_children(self) -> None:
        deadline = time.monotonic() + self._grace
        signalled: set[int] = set()
        while not self._childless() and time.monotonic() < deadline:
            for pid in set(_descendants(os.getpid())) - signalled:
                signalled.add(pid)
                _send(pid, signal.SIGTERM)
                _send(pid, signal.SIGCONT)
            self._wait_for_an_end()
        while not self._childless() and time.monotonic() < deadline + KILL_TIMEOUT_S:
            self._cgroup.kill()
            for pid in _descendants(os.getpid()):
                _kill_group(pid)
            for _ in range(1000):  # tight: a link of a chain lives for less than a millisecond
                for pid in _children(os.getpid()):
                    _kill_group(pid)
                if self._childless():
                    return

    def _wait_for_an_end(self) -> None:
        """Wait until a child ends, at most `POLL_S`."""
        for wake in select.select(self._wake, [], [], POLL_S)[0]:
            os.read(wake, 4096)

    def _childless(self) -> bool:
        """Whether nothing is left. Exact where orphans become our children."""
        self._reap()
        try:
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return self._exact
        return False

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            if pid == self._tool and self._end_of_tool < 0:
                self._status = os.waitstatus_to_exitcode(status)

    def _report(self) -> None:
        status = -signal.SIGKILL if self._status is None else self._status
        try:
            os.write(self._lifeline, f"status {status}\n".encode())
        except OSError:
            return  # the bridge is gone: nobody to report to


class Cgroup:
    """A cgroup (v2) of one tool. Where none can be made, its methods do nothing."""

    def __init__(self, directory: str | None) -> None:
        self._directory = directory

    @classmethod
    def create(cls, run_id: str) -> Cgroup:
        """Make one below our own. It has no limits: it only makes `kill` exact."""
        try:
            with open("/proc/self/mountinfo") as mounts:
                (mounted,) = [fields[4] for fields in map(str.split, mounts) if "cgroup2" in fields[6:]]
            with open("/proc/self/cgroup") as groups:
                (own,) = [line[3:].strip() for line in groups if line.startswith("0::")]
            directory = f"{mounted}{own.rstrip('/')}/msp-bridge-{run_id}"
            os.mkdir(directory)
        except (
            OSError,
            ValueError,
        ):  # no Linux, no cgroup v2, or no right to write there: the usual case in containers
            return cls(None)
        return cls(directory)

    def enter(self) -> None:
        """Put this process into it."""
        self._write("cgroup.procs", "0")

    def kill(self) -> None:
        """Kill all its processes at once, processes that are being forked included."""
        self._write("cgroup.kill", "1")

    def delete(self) -> None:
        """Remove it, after the end of its processes."""
        if self._directory is not None:
            try:
                os.rmdir(self._directory)
            except OSError:
                return  # one of them is in uninterruptible sleep

    def _write(self, name: str, text: str) -> None:
        if self._directory is not None:
            try:
                with open(f"{self._directory}/{name}", "w") as file:
                    file.write(text)
            except OSError:
                return  # before Linux 5.14 there is no `cgroup.kill`


def _children(pid: int) -> list[int]:
    """The direct children of a process without threads, as fast as possible."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children", "rb") as file:
            return [int(word) for word in file.read().split()]
    except OSError:  # gone, or a kernel without this file
        return [child for child, parent in _parents() if parent == pid]


def _descendants(pid: int) -> list[int]:
    """All processes below `pid`."""
    below: dict[int, list[int]] = {}
    for child, parent in _parents():
        below.setdefault(parent, []).append(child)
    found = [pid]
    for each in found:
        found += below.get(each, ())
    return found[1:]


def _parents() -> list[tuple[int, int]]:
    """Each process of the machine and its parent."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                found.append((int(name), int(file.read().rpartition(b")")[2].split()[1])))
        except OSError:
            continue  # gone meanwhile
    return found


def _kill_group(pid: int) -> None:
    """Kill a process, and its group with it where that isn't our own."""
    try:
        group = os.getpgid(pid)
        if group != os.getpgrp():
            os.killpg(group, signal.SIGKILL)
        os.kill(pid, signal.SIGKILL)
    except OSError:
        return  # gone meanwhile


def _send(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except OSError:
        return  # gone meanwhile


def _ending_signals() -> tuple[int, ...]:
    """Ignored here: only the lifeline ends a supervisor, which must be the last to go. Not for the tool."""
    return signal.SIGTERM, signal.SIGINT, signal.SIGHUP


def _release_streams() -> None:
    """Let go of the tool's pipes, which must close when the tool closes them."""
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    os.close(null)


def _prctl(option: int, value: int) -> bool:
    """Whether the kernel took it: Linux alone has prctl."""
    if sys.platform != "linux":
        return False
    import ctypes

    return bool(ctypes.CDLL(None).prctl(option, value, 0, 0, 0) == 0)


def main(arguments: list[str]) -> None:
    """The arguments are LIFELINE RUN_ID GRACE SITE NAMESPACE -- ARGV; NAMESPACE is 0 or 1."""
    lifeline, run_id, grace, site, namespace, _, *argv = arguments
    Supervisor(int(lifeline), run_id, float(grace), site, namespace=namespace == "1").run(argv)
