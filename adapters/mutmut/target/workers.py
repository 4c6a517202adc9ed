"""Workers: one forked process for each job, watched until it and all that it started are gone."""

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

PATIENCE = 300  # hundredths of a second for a zygote that may be busy with its workers
FOREVER = 1e6  # seconds: no limit


@dataclass
class Worker:
    """A running job."""

    job: int
    pid: int
    deadline: float  # time.monotonic()
    reader: int  # -1 at its end
    scratch: Path
    received: bytearray
    fate: str = ""  # "timeout" or "stopped" when we killed it


@dataclass(frozen=True)
class Mission:
    """What a worker finds itself with: its job, a directory for temporary files, and whom to tell."""

    job: Message
    scratch: Path
    writer: int

    def fulfil(self, work: Callable[[Message], Message]) -> NoReturn:
        """Do the job, tell the report, and end the process."""
        code = 70  # EX_SOFTWARE: a fault of our own, or something that the tests tore down around us
        try:
            data = memoryview(json.dumps(work(self.job)).encode())
            while data:
                data = data[os.write(self.writer, data) :]
            code = 0
        except (
            BaseException
        ):  # nothing may reach the stack below, which belongs to the process that we were forked from
            traceback.print_exc()
        finally:
            os._exit(code)


class Workers:
    """Forks a worker for each job that comes through the channel and answers when it is gone.

    A job: {"id", "do": "run", "limit": seconds, …}. An answer: {"id", "exit", "fate", "report"}; report is None when
    the worker didn't get so far. {"do": "stop", "ids": [...]} kills. The end of the channel ends everything.
    """

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._running: dict[int, Worker] = {}  # by pid
        self._before = descendants.children()  # what collecting the tests has started is needed by them
        self._wake, self._waker = os.pipe()
        self._mission: Mission | None = None  # in a worker

    def serve(self) -> Mission:
        """Returns in the workers only. In this process, the end of the channel ends what is running and the process."""
        os.set_blocking(self._wake, False)
        os.set_blocking(self._waker, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._waker, warn_on_full_buffer=False)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        while self._turn():
            if self._mission is not None:
                return self._mission
        for worker in list(self._running.values()):
            self._kill(worker, "stopped")
        for worker in list(self._running.values()):
            descendants.reap([worker.pid])
            self._bury(worker, 0)
        os._exit(0)

    def _turn(self) -> bool:
        """Wait for something to happen and see to it; False when the channel has ended."""
        now = time.monotonic()
        wait = min((w.deadline for w in self._running.values() if not w.fate), default=now + FOREVER) - now
        readers = {w.reader: w for w in self._running.values() if w.reader >= 0}
        ready, _, _ = select.select([self._channel.reader, self._wake, *readers], [], [], max(0.0, wait))
        for reader in readers.keys() & set(ready):
            self._read(readers[reader])
        if self._wake in ready:
            os.read(self._wake, 4096)
        if self._channel.reader in ready:
            messages = self._channel.receive()
            if messages is None:
                return False
            for message in messages:
                self._obey(message)
                if self._mission is not None:
                    return True
        for worker in list(self._running.values()):
            if not worker.fate and time.monotonic() >= worker.deadline:
                self._kill(worker, "timeout")
        self._reap()
        return True

    def _obey(self, message: Message) -> None:
        if message["do"] == "run":
            self._fork(message)
        else:
            for worker in self._running.values():
                if worker.job in message["ids"]:
                    self._kill(worker, "stopped")

    def _fork(self, job: Message) -> None:
        scratch = Path(tempfile.mkdtemp(prefix="mutant-"))
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            self._become(Mission(job, scratch, writer), reader)
            return
        os.close(writer)
        with contextlib.suppress(OSError):  # whoever of us two comes first
            os.setpgid(pid, pid)
        deadline = time.monotonic() + (job["limit"] or FOREVER)
        self._running[pid] = Worker(job["id"], pid, deadline, reader, scratch, bytearray())

    def _become(self, mission: Mission, reader: int) -> None:
        """In the worker: let go of all that belongs to its parent."""
        descendants.die_with_parent()
        descendants.adopt_orphans()
        with contextlib.suppress(OSError):
            os.setpgid(0, 0)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        self._channel.close()
        for descriptor in (
            reader,
            self._wake,
            self._waker,
            *(w.reader for w in self._running.values() if w.reader >= 0),
        ):
            os.close(descriptor)
        self._mission = mission

    def _read(self, worker: Worker) -> None:
        data = os.read(worker.reader, 1 << 16)
        worker.received += data
        if not data:
            os.close(worker.reader)
            worker.reader = -1

    def _kill(self, worker: Worker, fate: str) -> None:
        worker.fate = worker.fate or fate
        descendants.end_group(worker.pid)

    def _reap(self) -> None:
        for pid in list(self._running):
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                self._bury(self._running[pid], os.waitstatus_to_exitcode(status))

    def _bury(self, worker: Worker, code: int) -> None:
        """The worker has ended: end what it left behind, and tell."""
        del self._running[worker.pid]
        descendants.end_group(worker.pid)
        descendants.end_strays(self._before | self._running.keys())
        while worker.reader >= 0:
            self._read(worker)
        shutil.rmtree(worker.scratch, ignore_errors=True)  # what can't be deleted goes with the host's own directory
        answer: dict[str, Any] = {
            "id": worker.job,
            "exit": code,
            "fate": worker.fate,
            "report": _parsed(worker.received),
        }
        with contextlib.suppress(OSError):  # the channel has ended
            self._channel.send(answer)


def _parsed(data: bytearray) -> Message | None:
    """The report, when all of it came."""
    try:
        report: Message = json.loads(bytes(data))
    except ValueError:
        return None
    return report


class Pool:
    """The other side: a forked process that serves `Workers`."""

    def __init__(self, serve: Callable[[Channel], None], log: str, private: Iterable[int]) -> None:
        """`private` are descriptors of this process that the forked one has to close."""
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
                output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
                os.dup2(output, 1)
                os.dup2(output, 2)
                os.close(output)
                serve(Channel(theirs.fileno(), theirs.fileno()))
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(0)
        theirs.close()
        self._socket = ours
        self.channel = Channel(ours.fileno(), ours.fileno())

    def end(self) -> None:
        """End it with all its workers and what they started."""
        self._socket.close()  # it then ends its workers and itself
        for _ in range(PATIENCE):
            if os.waitpid(self.pid, os.WNOHANG)[0]:
                return
            time.sleep(0.01)
        descendants.end_group(self.pid)
        descendants.reap([self.pid])
