"""The fork servers that there are at a time, and the only place that starts and ends them."""

from __future__ import annotations

import os
import socket
import time
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path

from . import descendants, imports
from .channel import Channel, Message, TargetPlan
from .endings import Unprepared, last_error, why_not_collected
from .fork_server import ForkServer
from .imports import ImportTrace
from .job_process import Job
from .world import World

SERVER_END_S = 3.0  # for a server that may be busy with its jobs
POLL_S = 0.01
BLOCK = 4096  # bytes: less may find room in what a file has already
FAILED: Message = {"do": "failed", "exit": "?", "broken": []}


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


class ForkServers:
    """A live server, if its jobs can be trusted, and a fresh one."""

    def __init__(self, root: str, home: Path, world: World, private: Iterable[int]) -> None:
        """`private` are descriptors that only the host may hold."""
        self._root, self._home, self._world, self._private = root, home, world, list(private)
        self.live: ServerProcess | None = None
        self.fresh: ServerProcess | None = None
        self.why_fresh: str | None = None  # why there is no live server

    @property
    def running(self) -> list[ServerProcess]:
        """Those that there are."""
        return [server for server in (self.live, self.fresh) if server is not None]

    @property
    def pair(self) -> tuple[ServerProcess | None, ServerProcess]:
        """The live and the fresh one, after `start`."""
        assert self.fresh is not None
        return self.live, self.fresh

    def start(self, plan: TargetPlan) -> Message | None:
        """Both; what the collection has shown, None where every mutant needs a fresh process. Raises Unprepared."""
        self.why_fresh = "the configuration asks for it" if plan.always_fresh else None
        self.fresh = self._start("fresh", plan)
        collected = None if plan.always_fresh else self._collect(plan)
        self._await_fresh(plan)
        return collected

    def drop_live(self, why: str) -> None:
        """Its jobs can't be trusted."""
        if self.live is not None:
            self.live.end()
        self.live, self.why_fresh = None, why

    def end(self) -> None:
        """End them, their jobs, and what those have left."""
        for server in self.running:
            server.end()
        self.live = self.fresh = None
        descendants.end_strays(self._world.processes)

    def log(self, kind: str) -> str:
        """The end of what pytest has printed."""
        return (self._home / f"{kind}.log").read_text(encoding="utf-8", errors="replace").strip()[-1500:]

    def _check_room(self) -> None:
        """Raises OSError when nothing can be written beside the logs, as on a full disk."""
        file = self._home / "room"
        try:
            file.write_bytes(bytes(BLOCK))
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(file)) from None
        finally:
            file.unlink(missing_ok=True)

    def _start(self, kind: str, plan: TargetPlan) -> ServerProcess:
        private = [*self._private, *(server.channel.reader for server in self.running)]
        log = f"{self._home}/{kind}.log"
        return ServerProcess(lambda channel: _serve(kind, channel, plan, self._root, self._world), log, private)

    def _collect(self, plan: TargetPlan) -> Message:
        self.live = self._start("live", plan)
        answer = next(self.live.channel.messages(), None)
        if answer is None:
            log = self.log("live")
            if not log:
                self._check_room()  # else it has said why
            raise Unprepared(f"pytest crashed while it collected the tests: {last_error(log)}", log)
        if answer["do"] == "failed":
            raise why_not_collected(answer, self.log("live"))
        if answer["elsewhere"] is not None:
            path, file = answer["elsewhere"]
            raise Unprepared(
                f"the tests import {path} from {file}, so no mutant of it would be tested", kind="elsewhere"
            )
        if answer["threads"]:  # a fork has none of the threads that the modules have started
            self.drop_live("the project starts threads when it is imported")
        elif answer["trace_lost"]:
            self.drop_live("the project sets a trace function when it is imported")
        return answer

    def _await_fresh(self, plan: TargetPlan) -> None:
        """Until the fresh server is ready, or the bare one, if pytest itself imports the project."""
        assert self.fresh is not None
        answer = next(self.fresh.channel.messages(), FAILED)
        if answer["do"] == "unfit":
            self.fresh.end()
            self.fresh = None
            self.fresh = self._start("bare", plan)
            answer = next(self.fresh.channel.messages(), FAILED)
        if answer["do"] != "ready":
            raise why_not_collected(answer, self.log("fresh"))


def _serve(kind: str, channel: Channel, plan: TargetPlan, root: str, world: World) -> None:
    imports.enter(root, world.place)
    if kind == "bare":
        channel.send({"do": "ready"})
        ForkServer(channel, world).serve().run(lambda job: _alone(job, plan, world))
    trace = ImportTrace(frozenset(plan.filenames))
    if kind == "live":
        trace.start()  # before pytest, which may import the project
    from . import servers  # here, and not above: it imports pytest, which the host must not

    getattr(servers, kind)(channel, plan, world, trace)


def _alone(job: Job, plan: TargetPlan, world: World) -> Message:
    """A job of the bare server: pytest is imported with the mutated file in place, for it imports the project."""
    start = time.perf_counter()
    from . import servers

    return servers.alone(job, plan, world, start)
