"""Fork server: one forked process for each job, watched until it and all that it started are gone.

Theory of operation
-------------------
A server process has done what all jobs have in common: it has started pytest, or collected the tests as well. Each
job is a fork of it, so it begins in that state and can't change it for the next one. The server itself only waits:
for messages of the host, for reports of its jobs on their pipes, for SIGCHLD, and for the next deadline.

    forked --its world is entered--> waiting --job--> running --report--> answered --exit--> ended
                                        |                '--killed, crashed: exit, without a report--> ended, answered
                                        '--too old, other parts, files have changed, a cancel--> discarded

To fork a process and to enter its world takes longer than most tests. So after a job has begun, a process for the next
one is forked *ahead*, and waits, if the job has a world of its own or a guard (else the process would share the sandbox
with it). It is the same as one that is forked when the job comes, as long as neither the server nor the directories
below its world change: a reload and `renew` discard it, and so does its age. So does a cancel, after which no process
of tests is to be left.

A file that the server has open is one for all jobs, past each layer and each restored tree: a database or a log that an
import has opened. What one job writes there another one would read, and where one has read, the next one goes on. So
each job opens such files again by their names, in its world, at the same offset. So it is with what wakes an event loop
of asyncio that has not begun. Where an import has opened what can't be opened again, such as another socket, there is
no server (`ImportTrace.why_fresh`).

A job has ended when its process was reaped; then its process group is killed, on Linux also every process that it left
behind (the server is a "child subreaper": orphans become its children, whatever they did to their session, and it reaps
one that ends before the job), and its directory is deleted. Where jobs share the sandbox, the answer is sent after
that: the next job finds nothing of it. In a world of its own, or with a guard, nothing can be left, and its end takes a
while: the answer is sent with the report.

Invariants. Exactly one answer for each job, in whatever way it ended; a job that is killed is answered when nothing of
it is left. A job writes its report to a pipe of its own and ends with `os._exit`: nothing on the stack below it, which
belongs to the server's pytest, ever runs in it. A mutant may end it with any exit code: that our own code has failed
is said by a report, too (`Job.fail`), and is no verdict. The end of the host's channel ends every process and the
server. The server runs no code of the project after the fork point, so it can't be hung by it.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import warnings
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from ...isolation import descendants, guard
from ...isolation.descriptors import OpenFile, open_files
from .channel import Channel, TestCount
from .event_loops import idle_loops, renew
from .file_edit import FileEdit
from .job_process import Job, JobProcess
from .live_code import Segment
from .made_files import remove
from .messages import Ended, JobMessage, Reload, Renew, Stop
from .own_clock import Clock
from .world import World, new_scratch


class ForkServer:
    """Forks a process for each job that comes through the channel, and answers with what it reports.

    A job: {"id", "do": "run", "limit": seconds, "parts", "edit", …}. An answer: {"id", "exit", "kill_reason",
    "report", "tests"}; report is None when the process didn't get so far, and {"fault", "begun"} where our own code has
    failed. Before it may come {"id", "piece"}, a part of a report. {"do": "stop", "ids": [...]} kills.
    {"do": "renew"}: files have changed. The end of the channel ends everything.
    """

    def __init__(
        self,
        channel: Channel,
        world: World,
        handle: Callable[[Reload], Mapping[str, object]] | None = None,
        before_job: Callable[[JobMessage], None] | None = None,
    ) -> None:
        """In this process, `handle` answers messages that are no jobs, and `before_job` gets each that is one."""
        self._channel, self._world, self._handle, self._before_job = channel, world, handle, before_job
        self._running: dict[int, JobProcess] = {}  # by pid
        self._waiting: JobProcess | None = None  # forked ahead
        self._before = descendants.children()  # another server; what collecting the tests has started for them
        self._shares_memory = False
        self._files: list[tuple[OpenFile, str]] = []  # that are open, with their names
        self._loops = idle_loops()
        self._handlers: dict[int, Any] = {}  # of signals, as the project has set them
        self._wake, self._waker = os.pipe()
        self._job: Job | None = None  # in a forked process

    def serve(self) -> Job:
        """Returns in the forked processes only. Here, the end of the channel ends the jobs and this process."""
        os.set_blocking(self._wake, False)
        os.set_blocking(self._waker, False)
        self._handlers[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._waker, warn_on_full_buffer=False)
        self._handlers[signal.SIGINT] = signal.signal(signal.SIGINT, signal.SIG_IGN)
        self._shares_memory = self._world.shares_memory()
        with contextlib.suppress(OSError):  # this system has no list of them
            log = os.fstat(2)
            self._files = [(each, each.name) for each in open_files() if each.can_be_own and not each.is_same(log)]
        while self._step():
            if self._job is not None:
                return self._job
        self._discard()
        for job in list(self._running.values()):
            self._kill(job, "stopped")
        for job in list(self._running.values()):
            descendants.reap([job.pid])
            self._finish(job, 0)
        os._exit(0)

    def _step(self) -> bool:
        """Wait for something to happen and handle it; False when the channel has ended."""
        moments = [job.next_look for job in self._running.values() if not job.kill_reason]
        if self._waiting is not None:
            moments.append(self._waiting.expires)
        wait_s = max(0.0, min(moments) - Clock.monotonic()) if moments else None
        readers = {job.channel.reader: job for job in self._running.values() if job.channel.reader >= 0}
        ready, _, _ = select.select([self._channel.reader, self._wake, *readers], [], [], wait_s)
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
                if self._job is not None:  # in the forked process
                    return True
            self._fork_ahead()
            if self._job is not None:
                return True
        for job in list(self._running.values()):
            if not job.kill_reason and job.is_over(self._strays):
                self._kill(job, "timeout")
        self._reap()
        if not self._running:
            self._world.keep_free(1)
        if self._waiting is not None and not self._waiting.serves(self._waiting.parts):
            self._discard()
        return True

    def _receive(self, message: JobMessage | Stop | Renew | Reload) -> None:
        if message["do"] == "run":
            self._start(message)
        elif message["do"] == "stop":
            self._stop(message["ids"])
        elif message["do"] == "renew":
            self._discard()
            self._world.made = message.get("made", self._world.made)
        elif self._handle is not None:
            self._discard()
            self._channel.send(self._handle(message))
            self._shares_memory = self._world.shares_memory()

    def _start(self, message: JobMessage) -> None:
        """Give a job to a process: to the one that waits, if it serves."""
        self._prepare(message)
        process, self._waiting = self._waiting, None
        if process is not None and not (process.serves(message["parts"]) and process.give(message)):
            self._end(process)
            process = None
        if process is None:
            process = self._fork(message["parts"])
            if process is None:
                return
            process.give(message)  # if it has died, its exit code says why
        process.id = message["id"]
        process.begins(message)
        self._running[process.pid] = process

    def _prepare(self, message: JobMessage) -> None:
        """Do once what a job has in common with others: most often the next mutant is of the same function."""
        if self._before_job is not None:
            self._before_job(message)
        if "edit" in message:
            self._world.read_ahead(FileEdit(*message["edit"]))
        if "segment" in message:
            with warnings.catch_warnings(), contextlib.suppress(Exception):  # the job says so
                warnings.simplefilter("ignore")
                Segment(*message["segment"]).compiled_old()

    def _stop(self, ids: Collection[int]) -> None:
        """Kill jobs. Once they are answered nothing is left: no world that still ends, nor a process that waits."""
        self._discard()
        for job in list(self._running.values()):
            if job.answered or job.id in ids:
                self._kill(job, "stopped")
            if job.answered:
                descendants.reap([job.pid])
                self._finish(job, 0)

    def _fork_ahead(self) -> None:
        """A process for the next job, if the last one that has begun is apart from others, and was not killed."""
        last = next(reversed(self._running.values()), None)
        if self._waiting is None and last is not None and last.is_apart and not last.kill_reason:
            with contextlib.suppress(OSError):  # a full disk, or too many processes: the next job says so
                self._waiting = self._fork(last.parts)

    def _fork(self, parts: list[str]) -> JobProcess | None:
        """A process that enters its world and waits for its job. None in that process, when it has its job."""
        scratch = new_scratch()
        reader, report = os.pipe()
        job, writer = os.pipe()
        ended, began = TestCount(), Clock.monotonic()
        pid, namespace = self._world.fork(parts)
        if pid == 0:
            os.close(reader)
            os.close(writer)
            self._become(job, Job({}, scratch, report, ended), parts, separated=namespace is not None)
            return None
        os.close(report)
        os.close(job)
        if namespace is None:
            with contextlib.suppress(OSError):  # the first of us two
                os.setpgid(pid, pid)
        return JobProcess(pid, parts, namespace, scratch, Channel(reader, writer), ended, Clock.monotonic() - began)

    def _become(self, reader: int, job: Job, parts: list[str], *, separated: bool) -> None:
        """In the forked process: let go of all that belongs to the server, enter the world, and wait for the job."""
        descendants.die_with_parent()
        for process in self._running.values():
            process.channel.close()
        if separated:
            os.setsid()
        else:
            if "overlay" in parts:  # others run beside it; else this is for the server, which also reaps them
                descendants.adopt_orphans()
            with contextlib.suppress(OSError):
                os.setpgid(0, 0)
        signal.set_wakeup_fd(-1)
        for number, handler in self._handlers.items():
            signal.signal(number, handler or signal.SIG_DFL)  # None: it is none of Python's
        self._channel.close()
        for descriptor in (self._wake, self._waker):
            os.close(descriptor)
        try:
            self._world.enter(job.scratch, parts)
            message = next(Channel(reader, -1).messages(), None)
            if message is None:  # the server has no job for it
                os._exit(0)
            os.close(reader)
            edit = FileEdit(*message["edit"]) if "edit" in message else None
            if message.get("guarded"):
                self._world.put_guarded(edit, [job.writer], os.fstat(2))
                if self._shares_memory or self._world.made:
                    guard.end()
            else:
                self._own_files()
                remove(self._world.place, self._world.made)
                if edit is not None:
                    self._world.put(edit)
        except Exception as error:
            job.fail(error, begun=False)
        self._job = replace(job, message=message)

    def _own_files(self) -> None:
        """In the forked process: have the files of its world open, not those of all jobs, and loops of its own."""
        for loop in self._loops:
            renew(loop)
        for file, name in self._files:
            with contextlib.suppress(OSError):  # too large for the layer: it stays shared
                file.open_again(name)

    def _read(self, job: JobProcess) -> None:
        for piece in job.read():
            self._send({"id": job.id, "piece": piece})
        if job.report is not None and job.is_apart and not job.kill_reason and not job.answered:
            self._answer(job, 0)

    def _kill(self, job: JobProcess, reason: str) -> None:
        job.kill_reason = job.kill_reason or reason
        if job.namespace is not None:
            job.namespace.kill()
        else:
            descendants.end_group(job.pid)

    def _reap(self) -> None:
        strays = self._strays() if any(job.may_leave_strays for job in self._running.values()) else set()
        for pid in self._before | strays:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        for pid in list(self._running):
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                self._finish(self._running[pid], os.waitstatus_to_exitcode(status))

    def _finish(self, job: JobProcess, code: int) -> None:
        """Its process has ended: end what it left behind, and answer."""
        del self._running[job.pid]
        if job.namespace is None:
            descendants.end_group(job.pid)
        self._clear(job)
        while job.channel.reader >= 0:
            self._read(job)
        if not job.answered:
            self._answer(job, code)

    def _discard(self) -> None:
        """End the process that waits, and the process namespaces that wait for one."""
        process, self._waiting = self._waiting, None
        if process is not None:
            self._end(process)
        self._world.keep_free(0)

    def _end(self, process: JobProcess) -> None:
        """End a process that has no job."""
        self._kill(process, "stopped")
        descendants.reap([process.pid])
        self._clear(process)
        process.channel.close()

    def _clear(self, process: JobProcess) -> None:
        """A process was reaped: end what it left behind, and delete its directory."""
        if process.namespace is None:  # else none of its processes has become a child of this one
            descendants.end_strays(self._known)
        self._world.after_job(process.pid, process.namespace, undo=process.may_have_written)
        process.erase()

    @property
    def _known(self) -> set[int]:
        waiting = set() if self._waiting is None else {self._waiting.pid}
        return self._before | self._running.keys() | waiting | self._world.processes

    def _strays(self) -> set[int]:
        """Processes that a job in the shared sandbox has left: no other runs beside it."""
        return descendants.children() - self._known

    def _answer(self, job: JobProcess, code: int) -> None:
        job.answered = True
        answer: Ended = {
            "id": job.id,
            "exit": code,
            "kill_reason": job.kill_reason,
            "report": job.report,
            "tests": job.ended.now,
            "seconds": job.fork_s + Clock.monotonic() - job.begun,
        }
        self._send(answer)

    def _send(self, answer: Mapping[str, object]) -> None:
        with contextlib.suppress(OSError):  # the channel has ended
            self._channel.send(answer)
