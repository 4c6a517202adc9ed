"""Fork server: one forked process for each job, watched until it and all that it started are gone.

Theory of operation
-------------------
A server process has done what all jobs have in common: it has started pytest, or collected the tests as well. Each
job is a fork of it, so it begins in that state and can't change it for the next one. The server itself only waits:
for messages of the host, for reports of its jobs on their pipes, for SIGCHLD, and for the next deadline.

States of a job: running, killed (`kill_reason` says why), ended. A job has ended when its process was reaped; then
its process group is killed, on Linux also every process that it left behind (the server is a "child subreaper":
orphans become its children, whatever they did to their session), its directory is deleted, and one answer is sent. So
when the answer is out, nothing of the job is left, and the next job finds nothing of it.

Invariants. Exactly one answer for each job, in whatever way it ended. A job writes its report to a pipe of its own and
ends with `os._exit`: nothing on the stack below it, which belongs to the server's pytest, ever runs in it. The
end of the host's channel ends every job and the server. The server runs no code of the project after the fork point, so
it can't be hung by it.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import socket
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from . import descendants
from .channel import Channel, Message
from .process_namespace import ProcessNamespace
from .world import World

SERVER_END_S = 3.0  # for a server that may be busy with its jobs
POLL_S = 0.01
NO_LIMIT_S = 1e6


@dataclass
class RunningJob:
    """A job whose process runs."""

    id: int
    pid: int
    deadline: float  # time.monotonic()
    reader: int  # -1 at its end
    scratch: Path
    received: bytearray
    namespace: ProcessNamespace | None
    kill_reason: str = ""  # "timeout" or "stopped" when we killed it


@dataclass(frozen=True)
class Job:
    """What a forked process finds itself with: what to do, a private directory, and the pipe for its report."""

    message: Message
    scratch: Path
    writer: int

    def run(self, work: Callable[[Job], Message]) -> NoReturn:
        """Do the work, send the report, and end the process."""
        code = 70  # EX_SOFTWARE: a fault of our own, or something that the tests tore down around us
        try:
            data = memoryview(json.dumps(work(self)).encode())
            while data:
                data = data[os.write(self.writer, data) :]
            code = 0
        except BaseException:  # nothing may reach the stack below, which belongs to the server
            traceback.print_exc()
        finally:
            os._exit(code)


class ForkServer:
    """Forks a process for each job that comes through the channel and answers when it is gone.

    A job: {"id", "do": "run", "limit": seconds, …}. An answer: {"id", "exit", "kill_reason", "report"}; report is
    None when the process didn't get so far. {"do": "stop", "ids": [...]} kills. The end of the channel ends
    everything.
    """

    def __init__(self, channel: Channel, world: World, handle: Callable[[Message], Message] | None = None) -> None:
        """`handle` answers messages that are no jobs, in this process."""
        self._channel, self._world, self._handle = channel, world, handle
        self._running: dict[int, RunningJob] = {}  # by pid
        self._before = descendants.children()  # what collecting the tests has started is needed by them
        self._wake, self._waker = os.pipe()
        self._job: Job | None = None  # in a forked process

    def serve(self) -> Job:
        """Returns in the forked processes only. Here, the end of the channel ends the jobs and this process."""
        os.set_blocking(self._wake, False)
        os.set_blocking(self._waker, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._waker, warn_on_full_buffer=False)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        while self._step():
            if self._job is not None:
                return self._job
        for job in list(self._running.values()):
            self._kill(job, "stopped")
        for job in list(self._running.values()):
            descendants.reap([job.pid])
            self._finish(job, 0)
        os._exit(0)

    def _step(self) -> bool:
        """Wait for something to happen and handle it; False when the channel has ended."""
        now = time.monotonic()
        wait = min((job.deadline for job in self._running.values() if not job.kill_reason), default=now + NO_LIMIT_S)
        readers = {job.reader: job for job in self._running.values() if job.reader >= 0}
        ready, _, _ = select.select([self._channel.reader, self._wake, *readers], [], [], max(0.0, wait - now))
        for reader in readers.keys() & set(ready):
            self._read(readers[reader])
        if self._wake in ready:
            os.read(self._wake, 4096)
        if self._channel.reader in ready:
            messages = self._channel.receive()
            if messages is None:
                return False
            for message in messages:
                self._receive(message)
                if self._job is not None:
                    return True
        for job in list(self._running.values()):
            if not job.kill_reason and time.monotonic() >= job.deadline:
                self._kill(job, "timeout")
        self._reap()
        return True

    def _receive(self, message: Message) -> None:
        if message["do"] == "run":
            self._fork(message)
        elif message["do"] == "stop":
            for job in self._running.values():
                if job.id in message["ids"]:
                    self._kill(job, "stopped")
        elif self._handle is not None:
            self._channel.send(self._handle(message))

    def _fork(self, message: Message) -> None:
        scratch = Path(tempfile.mkdtemp(prefix="m-"))
        reader, writer = os.pipe()
        pid, namespace = self._world.fork(message["parts"])
        if pid == 0:
            self._become(Job(message, scratch, writer), reader, separated=namespace is not None)
            return
        os.close(writer)
        if namespace is None:
            with contextlib.suppress(OSError):  # whoever of us two comes first
                os.setpgid(pid, pid)
        deadline = time.monotonic() + (message["limit"] or NO_LIMIT_S)
        self._running[pid] = RunningJob(message["id"], pid, deadline, reader, scratch, bytearray(), namespace)

    def _become(self, job: Job, reader: int, *, separated: bool) -> None:
        """In the forked process: let go of all that belongs to the server."""
        descendants.die_with_parent()
        for running in self._running.values():
            if running.namespace is not None:
                running.namespace.close()
        if separated:
            os.setsid()
        else:
            descendants.adopt_orphans()
            with contextlib.suppress(OSError):
                os.setpgid(0, 0)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        self._channel.close()
        others = (running.reader for running in self._running.values() if running.reader >= 0)
        for descriptor in (reader, self._wake, self._waker, *others):
            os.close(descriptor)
        self._job = job

    def _read(self, job: RunningJob) -> None:
        data = os.read(job.reader, 1 << 16)
        job.received += data
        if not data:
            os.close(job.reader)
            job.reader = -1

    def _kill(self, job: RunningJob, reason: str) -> None:
        job.kill_reason = job.kill_reason or reason
        if job.namespace is not None:
            job.namespace.kill()
        else:
            descendants.end_group(job.pid)

    def _reap(self) -> None:
        for pid in list(self._running):
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                self._finish(self._running[pid], os.waitstatus_to_exitcode(status))

    def _finish(self, job: RunningJob, code: int) -> None:
        """Its process has ended: end what it left behind, and answer."""
        del self._running[job.pid]
        if job.namespace is not None:
            job.namespace.end()
        else:
            descendants.end_group(job.pid)
        descendants.end_strays(self._before | self._running.keys())
        while job.reader >= 0:
            self._read(job)
        self._world.after_job(job.pid)
        _erase(job.scratch)
        answer: dict[str, Any] = {
            "id": job.id,
            "exit": code,
            "kill_reason": job.kill_reason,
            "report": _parsed(job.received),
        }
        with contextlib.suppress(OSError):  # the channel has ended
            self._channel.send(answer)


def _erase(directory: Path) -> None:
    """Delete it, also what tests or an overlay have closed to us; the rest goes with the host's directory."""

    def allow(function: Callable[..., Any], path: str, _error: object) -> None:
        with contextlib.suppress(OSError):
            os.chmod(os.path.dirname(path), 0o700)
            os.chmod(path, 0o700)
            function(path)

    shutil.rmtree(directory, onerror=allow)


def _parsed(data: bytearray) -> Message | None:
    """The report, when all of it came."""
    try:
        report: Message = json.loads(bytes(data))
    except ValueError:
        return None
    return report


class ServerProcess:
    """The host's side: a forked process that runs a `ForkServer`."""

    def __init__(self, serve: Callable[[Channel], None], log: str, private: Iterable[int]) -> None:
        """`private` are descriptors of this process that the forked one has to close. Raises OSError: a full disk."""
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
        ours, theirs = socket.socketpair()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                ours.close()
                for descriptor in private:
                    os.close(descriptor)
                descendants.die_with_parent()
                descendants.adopt_orphans()
                os.setpgid(0, 0)
                os.dup2(output, 1)
                os.dup2(output, 2)
                os.close(output)
                serve(Channel(theirs.fileno(), theirs.fileno()))
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(0)
        theirs.close()
        os.close(output)
        self._socket = ours
        self.channel = Channel(ours.fileno(), ours.fileno())

    def end(self) -> None:
        """End it with all its jobs and what they started."""
        self._socket.close()  # it then ends its jobs and itself
        deadline = time.monotonic() + SERVER_END_S
        while time.monotonic() < deadline:
            if os.waitpid(self.pid, os.WNOHANG)[0]:
                return
            time.sleep(POLL_S)
        descendants.end_group(self.pid)
        descendants.reap([self.pid])
