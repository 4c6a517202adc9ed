"""The host: the process that the bridge talks to. It never imports the project, nor pytest.

It owns the fork servers, the baseline and the scheduler. When files have changed it reloads what it can into the live
server (`reload`), and otherwise starts the servers anew.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import reduce
from pathlib import Path

from ...isolation import descendants
from .answers import ToHost
from .baseline import FOUND_OUT, Baseline, bits
from .channel import PROGRESS_S, READY, Channel, RunProgress, TargetPlan
from .dependencies import joined
from .endings import Unprepared, gist
from .file_edit import FileEdit
from .fork_servers import ForkServers
from .job_queue import Sharing
from .loaded_modules import have_changed
from .measurement import Measurement
from .measuring import MEASUREMENT, Measuring
from .messages import Collected, Ended, Options, Ran, Request, Started, Summary, Verdict
from .process_starts import PROCESSES
from .project_files import UNREADABLE, ProjectFiles
from .scheduler import MutantScheduler
from .server_process import ServerProcess
from .world import GUARD, World


def main(options: Options) -> None:
    """Serve the bridge until it closes the channel; the current directory is the sandbox."""
    channel = Channel.to_bridge()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    descendants.adopt_orphans()
    home = Path(options["home"])
    own = os.environ["TMPDIR"]
    world = World(options["root"], os.getcwd(), home / "layers", wanted=options["isolation"], temporary=own)
    channel.send(READY)
    HostServer(channel, options, world).serve()


class HostServer:
    """Requests: prepare, test, stop, check. Each is answered once, under its id, in whatever order.

    While it prepares, it says in messages without an id that it starts anew, how many tests have been run, and what it
    knows of them. So that comes before what it says of the measurement that follows.
    """

    def __init__(self, channel: Channel, options: Options, world: World) -> None:
        home = Path(options["home"])  # private; the sandbox's parent
        self._channel, self._jobs, self._root, self._world = channel, options["jobs"], options["root"], world
        self._servers = ForkServers(options["root"], home, world, (channel.reader, channel.writer))
        self._measurement = Measurement(home / "baseline.json", self._servers, world)
        self._measuring = Measuring(self._tests_run)
        self._collected: Collected | None = None
        self._unprepared: Unprepared | None = None  # why the tests can't be measured, for the next that prepares
        self._how, self._start = "started", 0.0  # the last preparation: "reloaded", too; time.perf_counter()
        self._settling: list[Request] = []  # are answered when no measurement runs
        self._scheduler: MutantScheduler | None = None
        self._files = ProjectFiles(world.place)
        self._late: set[str] = set()  # see `ToHost`
        self._imported: Ran | None = None  # what collecting the tests depends on

    def serve(self) -> None:
        """Until the bridge closes the channel."""
        while True:
            servers = self._servers.running
            readers = [self._channel.reader, *(each.channel.reader for each in servers)]
            waits = [] if self._scheduler is None else [self._scheduler.wait_s]
            waits += [PROGRESS_S if self._measuring.runs else None, self._servers.wait_s]
            ready, _, _ = select.select(
                readers, [], [], min((wait for wait in waits if wait is not None), default=None)
            )
            self._measuring.look()
            if self._servers.wait_s == 0.0:
                self._end_early()
            if self._scheduler is not None:
                self._scheduler.look()
            for server in servers:
                if server in self._servers.running and server.channel.reader in ready:
                    self._receive(server)
            if self._channel.reader in ready:
                messages = self._channel.receive()
                if messages is None:
                    break
                for message in messages:
                    self._handle(message)
        self._servers.end()

    def _receive(self, server: ServerProcess) -> None:
        """Handle what the jobs of a server have come to."""
        answers = server.channel.receive()
        if answers is None:
            if server.serves:
                raise SystemExit("a fork server has ended")  # the bridge starts a new host
            self._end_early()
        for answer in answers or ():
            if "do" in answer:
                self._on_early(server, answer)
            elif "piece" in answer:
                if self._scheduler is not None:
                    self._scheduler.learn(answer["piece"])
            elif answer["id"] == MEASUREMENT:
                self._on_measurement(answer)
            elif self._scheduler is not None:
                self._scheduler.receive(answer)

    def _on_early(self, server: ServerProcess, started: Started) -> None:
        """It is ready; or it holds nothing, and ends."""
        if started["do"] == "ready" and self._scheduler is not None:
            server.serves = True
            self._scheduler.early.ready(server, started)

    def _end_early(self) -> None:
        """It is not ready, and will not be: fresh processes do its jobs."""
        self._servers.end_early()
        if self._scheduler is not None:
            self._scheduler.early.start_ended()

    def _start_early(self, limit_s: float) -> None:
        """Where jobs are apart: it collects beside mutants. With a guard, that is tried first."""
        file = (self._collected or {}).get("calling")
        fit = self._servers.live is not None and not self._servers.made
        if not file or self._scheduler is None or not fit:
            self._end_early()
        elif (self._world.keeps_apart and self._world.undoes_all) or self._scheduler.early.is_starting:
            try:
                self._servers.start_early(self._scheduler.plan, file, limit_s)
            except OSError:
                self._end_early()
        elif self._sharing is Sharing.GUARD:
            self._scheduler.early.collect()

    def _on_measurement(self, answer: Ended) -> None:
        """A job of the measurement has ended."""
        if not self._measuring.runs or self._scheduler is None:
            return
        try:
            ended, baseline = self._measuring.receive(answer)
        except Unprepared as error:
            self._unprepared, ended, baseline = error, True, None
        if ended and baseline is not None:
            self._on_baseline(baseline, self._scheduler)
        elif ended:
            self._start_anew()
        if not self._measuring.runs:
            if self._scheduler is not None:
                self._scheduler.unmeasured.measured()
            self._settle()

    def _start_anew(self) -> None:
        """Answer all requests as stopped; the bridge prepares again for these."""
        self._channel.send({"id": None, "unprepared": True})  # first: else it would ask this scheduler again
        self._end_servers()
        self._settle()

    def _on_baseline(self, baseline: Baseline, scheduler: MutantScheduler) -> None:
        """All tests are measured."""
        baseline = replace(baseline, **{name: getattr(scheduler.baseline, name) for name in FOUND_OUT})
        same = scheduler.uses(self._servers.now, self._world.parts)
        if not same:  # what was begun says nothing
            scheduler.stop_all()
            self._scheduler = self._scheduled(baseline, scheduler.plan)
        self._channel.send({"id": None, "measured": self._summary(baseline)})
        if same:
            scheduler.complete(baseline)
        self._save()

    def _settle(self) -> None:
        """Answer requests that wait for the end of a measurement."""
        for message in self._settling:
            self._channel.send({"id": message["id"]})
        self._settling.clear()

    def _handle(self, message: Request) -> None:
        if message["do"] == "test":
            self._test(message)
            return
        if message["do"] == "reach":
            self._reach(message)
            return
        if message["do"] == "stop" and self._scheduler is not None:
            self._scheduler.stop(message["ids"])
            if self._scheduler.is_unwanted:
                self._measuring.stop()
        if message["do"] == "settle":
            self._measure()
        waits = self._measuring.stops if message["do"] == "stop" else self._measuring.runs
        if message["do"] in ("stop", "settle") and waits:
            self._settling.append(message)
            return
        answer: Mapping[str, object] = {}
        if message["do"] == "prepare":
            try:
                self._prepare(message)
            except Unprepared as error:
                self._end_servers()
                answer = {"error": self._placed(str(error)), "output": self._placed(error.output), "kind": error.kind}
                answer["failing"] = error.failing
            except OSError as error:
                self._end_servers()
                answer = {"error": str(error)}
                if error.errno is not None:  # else it comes from no system call: pytest raises such, too
                    answer = {"error": f"{error.strerror}: {error.filename!r}", "errno": error.errno}
        elif message["do"] == "check":
            answer = self._check()
        self._channel.send({"id": message["id"], **answer})

    def _tests_run(self, progress: RunProgress, total: int | None) -> None:
        """In the run without mutants."""
        self._channel.send({"id": None, "tests_run": progress.done, "of": total, "long": progress.long})

    def _check(self) -> dict[str, object]:
        """Which tests can't be relied on; none is looked for while mutants are tested."""
        found: dict[str, str] = {}
        if self._scheduler is not None and self._scheduler.idle:
            baseline = self._scheduler.baseline
            unsteady = self._measuring.drive(self._measurement.steadiness(baseline))
            baseline = baseline.with_unsteady(unsteady)
            self._scheduler = self._scheduled(baseline, self._scheduler.plan)
            self._save()
            found = {baseline.tests[test]: self._placed(text) for test, text in unsteady.items()}
        return {"unsteady": found}

    def _placed(self, text: str) -> str:
        """With the user's own files in the place of the sandbox's."""
        return text.replace(self._world.place, self._root)

    def _test(self, message: Request) -> None:
        edit, scheduler = FileEdit(*message["edit"]), self._scheduler
        try:
            source = self._files.source(edit.path) if scheduler and edit.path in scheduler.plan.sources else None
        except UNREADABLE:
            source = None
        if scheduler is None or source is None or source[0] != edit.digest:
            self._channel.send({"id": message["id"], "status": "stale"})
            return
        self._measure()
        try:
            change = source[1].change(edit.start, edit.end, edit.replacement)
        except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError) as error:
            reason = f"{type(error).__name__}: {error.msg if isinstance(error, SyntaxError) else error}"
            answer: Verdict = {"status": "CompileError", "reason": reason}
            self._channel.send({"id": message["id"], "covered": [], "static": None, **answer})
            return
        scheduler.test(message["id"], edit, change, message["batch"])

    def _reach(self, message: Request) -> None:
        """Find out which tests could kill each mutant now; `alone`: as far as tests run alone show.

        Those of `ran_alone` are not run alone for that: they would show what they have shown.
        """
        scheduler, id = self._scheduler, message["id"]
        if scheduler is None:
            self._channel.send({"id": id, "status": "stopped"})
            return
        functions = [(path, name) for path, name in message["functions"]]
        scheduler.baseline = scheduler.baseline.knowing(functions, message["ran_alone"])
        found = [self._files.statement(*row) for row in message["mutants"]]

        def answer() -> dict[str, object]:
            reached = [None if lines is None else scheduler.baseline.reach(*lines) for lines in found]
            return {"sound": scheduler.is_sound and self._imported is not None, "reach": reached}

        if message["alone"]:
            scheduler.when_alone(id, answer)
        else:
            self._channel.send({"id": id, **answer()})

    def _prepare(self, message: Request) -> None:
        self._start = time.perf_counter()
        error, self._unprepared = self._unprepared, None
        if error is not None and not message["changed"]:
            raise error
        before, plan = self._scheduler, TargetPlan.of(message["plan"], self._world.place)
        if before is not None:
            before.stop_all()
        self._servers.end_early()
        for server in self._servers.running if message["changed"] else ():
            server.channel.send({"do": "renew"})
        old = self._files.forget(message["changed"])
        pieces = self._measuring.end()
        baseline, self._how = None, "reloaded"
        outside = (self._collected or {}).get("outside", {})
        same = before is not None and _as_loaded(before.plan) == _as_loaded(plan) and not have_changed(outside)
        if before is not None and same and self._servers.live is not None:
            self._servers.put_back()
            known = reduce(Baseline.measured, pieces, before.baseline)
            baseline = self._files.reload(message["changed"], old, known, self._servers.live)
        if not old.keys() >= {*message["changed"]}:
            self._servers.has_edited_tests = True
        if baseline is not None and baseline.unmeasured and not self._measures_early(plan):
            steps = self._measurement.steps(plan, self._collected, baseline, reloaded=True)
            baseline = self._measuring.drive(steps)
        if baseline is None:
            baseline, self._how = self._restarted(plan), "started"
        self._files.read_tests(baseline.tests, message["changed"])
        self._scheduler = self._scheduled(baseline, plan)
        if not baseline.unmeasured:
            self._measurement.save(plan, baseline)
        else:
            self._measure()
        self._channel.send({"id": None, "prepared": self._summary(baseline)})

    def _restarted(self, plan: TargetPlan) -> Baseline:
        """The baseline of new servers: as far as it is known, where the rest is measured beside the mutants."""
        self._channel.send({"id": None, "restarts": True})
        self._end_servers()
        self._files.clear()
        self._collected = collected = self._servers.start(plan)
        self._imported = None if collected is None else joined([collected["ran"]])
        baseline = self._measurement.known(plan, collected)
        if baseline is None and collected is not None:
            baseline = replace(Baseline.unknown(collected), killers=self._measurement.last_killers())
        if baseline is None or (baseline.unmeasured and not self._measures_early(plan)):
            measured = self._measuring.drive(self._measurement.steps(plan, collected, baseline))
            assert measured is not None  # as it may be after a reload alone
            return measured
        return baseline

    def _measures_early(self, plan: TargetPlan) -> bool:
        """Whether mutants can be tested before all tests are measured: nothing is disturbed, nor remembered, by it."""
        return self._servers.live is not None and self._sharing is not Sharing.NONE and not plan.dependencies

    def _measure(self) -> None:
        """Begin the measurement that is due, if it does not run."""
        if self._scheduler is None or self._measuring.runs:
            return
        plan, baseline = self._scheduler.plan, self._scheduler.baseline
        if baseline.unmeasured:
            reloaded = self._how == "reloaded"
            steps = self._measurement.steps(plan, self._collected, baseline, reloaded=reloaded)
            self._measuring.start(steps, self._scheduler.unmeasured.measure)

    def _summary(self, baseline: Baseline) -> Summary:
        """Facts of the tests for the bridge. `measuring`: more will follow."""
        return {
            "tests": list(baseline.tests),
            "measuring": bool(baseline.unmeasured),
            "failing": {baseline.tests[test]: gist(text) for test, text in baseline.failing.items()},
            "always_fresh": self._servers.why_fresh,
            "unsteady": [baseline.tests[test] for test in sorted(baseline.unsteady)],
            "fork_unsafe": [baseline.tests[test] for test in sorted(baseline.fork_unsafe)],
            "starting": {baseline.tests[test]: baseline.durations[test] for test in bits(baseline.readers(PROCESSES))},
            "isolation": sorted(self._world.parts | ({GUARD} if self._sharing is Sharing.GUARD else set())),
            "imported": self._imported,
            "outside": (self._collected or {}).get("outside", {}),
            "how": self._how,
            "seconds": round(time.perf_counter() - self._start, 3),
        }

    def _scheduled(self, baseline: Baseline, plan: TargetPlan) -> MutantScheduler:
        sharing = self._sharing
        return MutantScheduler(
            baseline,
            plan,
            self._servers.now,
            self._world.parts,
            1 if sharing is Sharing.NONE else self._jobs,
            ToHost(self._channel.send, self._save, self._start_early, self._start_anew, self._late),
            self._files.tests,
            sharing,
        )

    @property
    def _sharing(self) -> Sharing:
        if self._world.keeps_apart:
            return Sharing.APART
        return Sharing.GUARD if self._jobs > 1 and self._world.guards else Sharing.NONE

    def _save(self) -> None:
        """Save what has become known since `_prepare`; if it can't be written, the next host finds it out."""
        assert self._scheduler is not None
        if self._scheduler.baseline.unmeasured:
            return
        with contextlib.suppress(OSError):
            self._measurement.save(self._scheduler.plan, self._scheduler.baseline)

    def _end_servers(self) -> None:
        self._servers.end()
        self._measuring.abandon()
        if self._scheduler is not None:
            self._scheduler.end()
            self._scheduler = None


def _as_loaded(plan: TargetPlan) -> tuple[object, ...]:
    """The parts that a live server has been started with."""
    return plan.arguments, plan.sources, plan.environment
