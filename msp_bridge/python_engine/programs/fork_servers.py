"""The fork servers that there are at a time, and the only place that starts and ends them.

The host forks the fresh server, and that one forks the live server, when it has started pytest and before it serves:
what both have in common is imported once, and lies in memory once. The live server may leave its process to the session
server, and go on in a fork. Where pytest itself imports the project, or has threads, which a fork would not have, the
host forks the live server too. It forks the early server when that is wanted.
"""

from __future__ import annotations

import gc
import shutil
import signal
import time
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from ...isolation import descendants
from . import imports
from .channel import Channel, TargetPlan
from .endings import Unprepared, last_error, reject_elsewhere, why_not_collected
from .fork_server import ForkServer
from .imports import ImportTrace
from .job_process import Job
from .made_files import copy
from .messages import Collected, Started
from .server_process import BARE, PLAIN, ServerProcess
from .world import World

BLOCK = 4096  # bytes: less may find room in what a file has already


class Servers(NamedTuple):
    """The servers of the jobs of mutants. `session`: does what the fresh one does, in less time, if nothing is left."""

    live: ServerProcess | None
    fresh: ServerProcess
    session: ServerProcess | None = None


class ForkServers:
    """A live server, if its jobs can be trusted, and a fresh one."""

    def __init__(self, root: str, home: Path, world: World, private: Iterable[int]) -> None:
        """`private` are descriptors that only the host may hold."""
        self._root, self._home, self._world, self._private = root, home, world, list(private)
        self.live: ServerProcess | None = None
        self.fresh: ServerProcess | None = None
        self.why_fresh: str | None = None  # why there is no live server
        self.session: ServerProcess | None = None
        self.has_edited_tests = False  # since the session server was started: a conftest.py may have imported one
        self.made: Sequence[str] = ()  # by the live server, in the tree
        self.early: ServerProcess | None = None  # it may not be ready
        self._early_limit_s = 0.0  # until it is

    @property
    def running(self) -> list[ServerProcess]:
        """The running servers."""
        return [server for server in (self.live, self.session, self.fresh, self.early) if server]

    @property
    def now(self) -> Servers:
        """The servers after `start`."""
        assert self.fresh is not None
        serves = not (self.has_edited_tests or self.made)
        return Servers(self.live, self.fresh, self.session if serves else None)

    def start(self, plan: TargetPlan) -> Collected | None:
        """Both; what the collection has shown, None where every mutant needs a fresh process. Raises Unprepared.

        Where the tests can't be collected with a home directory of our own, they are with the user's.
        """
        try:
            return self._start_both(plan)
        except Unprepared:
            if not self._world.enter_home(own=False):
                raise
            self.end()
            try:
                collected = self._start_both(plan)
            except Unprepared:
                self._world.enter_home(own=True)
                raise
            self._world.drop({"home"})
            return collected

    def _start_both(self, plan: TargetPlan) -> Collected | None:
        self.why_fresh = "the configuration asks for it" if plan.always_fresh else None
        self.made = ()
        shutil.rmtree(self._kept, ignore_errors=True)
        self.has_edited_tests = False
        # The live and the session server. They share a log: pytest's capture has kept descriptors that lead to that of
        # the live one, and a guard lets pass only what leads to the log of its own server.
        others = [] if plan.always_fresh else [self._unforked("live"), self._unforked("live")]
        self.fresh = self._start("fresh", plan, others)
        answer = self._answer(self.fresh)
        if others and answer["live"] is not None:
            self.live, self.session = others
            self.live.pid = self.session.pid = answer["live"]
        elif others:
            for other in others:
                other.socket.close()
            self.live = self._start("live", plan)
        if answer["do"] in (BARE, PLAIN):
            self.fresh.end()
            self.fresh = None
            self.fresh = self._start(answer["do"], plan)
            self._answer(self.fresh)
        return None if self.live is None else self._collected(self.live, self.session)

    def put_back(self) -> None:
        """Put back what the live server has made, after a refresh of the sandbox."""
        copy(self._kept, self._world.place, self.made)

    @property
    def _kept(self) -> str:
        return str(self._home / "layers" / "made")

    @property
    def wait_s(self) -> float | None:
        """How long the early server still has until it is ready; None where it is, or there is none."""
        if self.early is None or self.early.serves:
            return None
        return max(0.0, self.early.since + self._early_limit_s - time.monotonic())

    def start_early(self, plan: TargetPlan, file: str, limit_s: float) -> None:
        """Begin to start it: it holds pytest before the import of the test file. Raises OSError."""
        self.end_early()
        self._early_limit_s = limit_s
        self.early = self._start("early", plan, file=file)
        self.early.serves = False

    def end_early(self) -> None:
        """End it, if it has been started."""
        if self.early is not None:
            self.early.end()
        self.early = None

    def drop_live(self, why: str) -> None:
        """Its jobs can't be trusted."""
        for server in (self.live, self.session):
            if server is not None:
                server.end()
        self.live, self.session, self.why_fresh = None, None, why

    def end(self) -> None:
        """End them, their jobs, and what those have left."""
        for server in self.running:
            server.end()
        self.live = self.session = self.fresh = self.early = None
        descendants.end_strays(self._world.processes)

    def _check_room(self) -> None:
        """Raises OSError when nothing can be written beside the logs, as on a full disk."""
        file = self._home / "room"
        try:
            file.write_bytes(bytes(BLOCK))
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(file)) from None
        finally:
            file.unlink(missing_ok=True)

    def _unforked(self, kind: str) -> ServerProcess:
        return ServerProcess(f"{self._home}/{kind}.log")

    def _start(
        self, kind: str, plan: TargetPlan, others: Sequence[ServerProcess] = (), file: str = ""
    ) -> ServerProcess:
        """`others`: the servers that the fresh one forks if it can. `file`: of an early one."""
        private = [*self._private, *(server.channel.reader for server in self.running)]
        server = self._unforked(kind)
        server.fork(partial(_serve, kind, plan, self._root, self._world, others, file), private)
        for other in others:
            other.leave()
        return server

    def _answer(self, server: ServerProcess) -> Started:
        """The first message of a server. Raises Unprepared, and OSError when the disk is full."""
        answer: Started | None = next(server.channel.messages(), None)
        if answer is None:
            server.serves = False
            log = server.printed()
            if not log:
                self._check_room()  # else it has said why
            raise Unprepared(f"pytest crashed while it collected the tests: {last_error(log)}", log)
        server.pid = answer.get("pid", server.pid)
        if answer["do"] == "failed":
            raise why_not_collected(answer, server.printed())
        server.since = time.monotonic()
        return answer

    def _collected(self, live: ServerProcess, session: ServerProcess | None) -> Started:
        answer = self._answer(live)
        if session is not None and session.pid == live.pid:  # it has come to its end alone
            session.socket.close()
            self.session = None
        reject_elsewhere(answer["elsewhere"])
        self.made = answer["made"]
        if self.fresh is not None and self.made:
            self.fresh.channel.send({"do": "renew", "made": self.made})
        why = answer["why_fresh"]
        try:
            copy(self._world.place, self._kept, self.made)
        except OSError:  # a socket, for one
            why = why or "importing the project makes files that can't be copied"
        if why:
            self.drop_live(why)
        return answer


def _serve(
    kind: str,
    plan: TargetPlan,
    root: str,
    world: World,
    others: Sequence[ServerProcess],
    file: str,
    channel: Channel,
) -> None:
    job = None
    signal.signal(signal.SIGINT, signal.default_int_handler)  # as it is when a process begins
    for other in others:
        other.socket.close()
    imports.enter(root, world.place)
    if kind == BARE:
        job, start = _held(channel, world)
    if kind in ("live", "early"):
        trace = ImportTrace(frozenset(plan.filenames))
        trace.start()  # before pytest, which may import the project
    try:
        from . import early_server, servers  # here, and not above: they import pytest, which the host must not

        if kind == PLAIN:
            job, start = _held(channel, world)
        if job is not None:
            servers.alone(job, plan, world, start)
        elif kind == "live":
            servers.live(channel, plan, world, trace)
        elif kind == "early":
            servers.fresh(channel, plan, world, (), early_server.Early(file, trace))
        else:
            servers.fresh(channel, plan, world, others)
    except BaseException as error:
        if job is not None:
            job.end_broken(error)
        raise


def _held(channel: Channel, world: World) -> tuple[Job, float]:
    """Serve until the channel ends; returns in the processes of jobs, with the time when each has begun."""
    gc.collect()
    gc.freeze()
    channel.send({"do": "ready", "live": None})
    return ForkServer(channel, world).serve(), time.perf_counter()
