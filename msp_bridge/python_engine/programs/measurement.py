"""The run of the tests without a mutant, and its record for the next process.

What was measured is kept for the next process that finds the same project, but for Python files and documents
(`_key`). Tests that the record does not have, such as those whose names differ in each process, and tests that changes
of these files may concern (`kept`), are measured again, and no others.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Collection, Generator, Mapping
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from .baseline import SETS, Baseline, Held, bits
from .channel import COUNTS, MEASURED, TargetPlan
from .endings import Unprepared, gist, reject_elsewhere, why_not_collected
from .fork_servers import ForkServers
from .job_queue import Load
from .kept import Changes, KeptSources
from .loaded_modules import have_changed
from .measuring import Answer, Run, Steps
from .messages import Collected, JobMessage, Report
from .server_process import ServerProcess
from .survivors import skips_anew
from .world import LIMITS, World

# Parts of a world, the likeliest to make tests fail first.
DOUBTFUL = (LIMITS, "net", "home", "tmp", "pid", "ipc", "overlay")
FORMAT = 17  # of the file: another one whenever what it says changes
VARYING_S, VARYING_FACTOR = 0.25, 2.0  # the times of a test vary when they differ by more than both
DAMAGED = (OSError, ValueError, TypeError, AttributeError, KeyError)  # raised by a record that is none, or damaged
STUCK_S = 60  # for one test, where threads that a fork does not have may keep it waiting for ever


class Measurement:
    """Measurements of the tests as they are when the project has a certain content."""

    def __init__(self, file: Path, servers: ForkServers, world: World) -> None:
        self._file, self._servers, self._world = file, servers, world
        self._outside: Mapping[str, list[int]] = {}  # see `Collected`
        self._sources = KeptSources(file.with_name("sources"))

    def steps(
        self, plan: TargetPlan, collected: Collected | None, known: Baseline | None, *, reloaded: bool = False
    ) -> Steps:
        """The measurement of what `known` does not know; of everything where that is None. Raises Unprepared.

        `collected`: what collecting the tests has shown, where there is a live server. `reloaded`: `known` is of that
        server before an edit. Otherwise a test that fails by itself may need tests that ran before it.
        """
        if known is None or (known.is_unknown and known.unmeasured.bit_count() == len(known.tests)):
            return self._all(plan, collected)
        return self._rest(plan, collected, known, reloaded=reloaded and not known.is_unknown)

    def steadiness(self, baseline: Baseline) -> Generator[Run, Answer, dict[int, str]]:
        """Run all tests twice more, the second time under load: the tests that are not steady, and what they did."""
        varying: dict[int, str] = {}
        failed: dict[int, str] = {}  # it says more than a time that varies
        load = Load()
        for busy in (False, True):
            if busy:
                load.start()
            try:
                durations, failing = yield from self._again(baseline)
            finally:
                load.end()
            for test, text in failing.items():
                if test not in baseline.failing:
                    failed.setdefault(test, f"fails {'under load' if busy else 'sometimes'}: {gist(text)}")
            for test, seconds in durations.items():
                short, long = sorted((seconds, baseline.durations[test]))
                if not busy and long - short > VARYING_S and long > VARYING_FACTOR * short:
                    varying[test] = f"takes {short:.2f} s and {long:.2f} s"
        return varying | failed

    def _again(self, baseline: Baseline) -> Generator[Run, Answer, tuple[dict[int, float], dict[int, str]]]:
        """The durations and the failures of all tests, by their indexes; nothing where they don't come to their end."""
        live, fresh, _ = self._servers.now
        report, _ = yield Run(live or fresh, {"work": "measure", "tests": None}, self._world.parts)
        if report is None or "durations" not in report:
            return {}, {}
        index = {name: test for test, name in enumerate(baseline.tests)}
        names = baseline.tests if live is not None else report["collected"]["tests"]
        durations = {index[names[int(test)]]: seconds for test, seconds in report["durations"].items()}
        return durations, {index[names[int(test)]]: text for test, text in report["failing"].items()}

    def save(self, plan: TargetPlan, baseline: Baseline) -> None:
        """For the next process that finds the same project. Raises OSError."""
        lines = {path: {line: hex(mask) for line, mask in found.items()} for path, found in baseline.lines.items()}
        value = {
            "key": _key(plan),
            "files": dict(plan.files),
            "tests": list(baseline.tests),
            "seconds": baseline.collecting,
            "always_fresh": self._servers.why_fresh,
            "dropped": sorted(self._world.dropped),
            "report": {
                "waited": baseline.waited,
                "durations": dict(enumerate(baseline.durations)),
                "lines": lines,
                "failing": baseline.failing,
                "skipped": sorted(baseline.skipped),
                "late": sorted(baseline.late),
                "unseen": {path: sorted(keys) for path, keys in baseline.unseen.items()},
            },
            "imported": baseline.imported,
            "outside": self._outside,
            **{name: sorted(getattr(baseline, name)) for name in SETS},
            "killers": dict(baseline.killers),
            "survivors": [
                [path, edit, hex(held.tests), held.edited] for (path, edit), held in baseline.survivors.items()
            ],
            "suites_s": baseline.suites_s,
            "alone_s": baseline.alone_s,
            "set_up": baseline.set_up,
        }
        if self._file.is_dir():  # somebody has been at the cache
            shutil.rmtree(self._file)
        fresh = self._file.with_suffix(".new")
        fresh.write_text(json.dumps(value), encoding="utf-8")
        os.replace(fresh, self._file)
        self._sources.save(plan, baseline.tests)

    def known(self, plan: TargetPlan, collected: Collected | None) -> Baseline | None:
        """Read what the earlier measurement says of the project as it is now; None: nothing."""
        self._outside = {} if collected is None else collected["outside"]
        try:
            saved: dict[str, Any] = json.loads(self._file.read_bytes())
            if saved["key"] != _key(plan) or have_changed(saved["outside"]):
                return None
            baseline = _restored(saved, collected)
            tests = baseline.tests if collected is None else collected["tests"]
            if collected is not None and saved["always_fresh"] is None:
                changes = Changes(plan, saved["files"], self._sources, saved["imported"])
                kept = changes.kept(baseline, tests)
            else:  # nothing can be measured by itself
                kept = baseline if saved["files"] == plan.files and saved["tests"] == tests else None
            if kept is None or (kept.has_lost_lines and not kept.unmeasured):  # as after a test file is deleted
                return None
            self._world.drop(frozenset(saved["dropped"]))
            if saved["always_fresh"] is not None and self._servers.live is not None:
                self._servers.drop_live(saved["always_fresh"])
            if plan.dependencies and saved["files"] != plan.files:  # by these it is known which runs alone still hold
                return replace(kept, alone=frozenset(), order_dependent=frozenset())
            return kept
        except DAMAGED:
            return None

    def last_killers(self) -> dict[str, str]:
        """The `Baseline.killers` of an earlier content of the project."""
        try:
            killers: dict[str, str] = json.loads(self._file.read_bytes())["killers"]
            return {str(function): str(test) for function, test in killers.items()}
        except DAMAGED:
            return {}

    def _rest(self, plan: TargetPlan, collected: Collected | None, known: Baseline, *, reloaded: bool) -> Steps:
        """Measure the tests that are not measured, as after an edit of functions that they have run."""
        assert self._servers.live is not None
        job: JobMessage = {"work": "measure", "tests": list(bits(known.unmeasured)), "counts": MEASURED}
        report, _ = yield Run(self._servers.live, job, self._world.parts, known.unmeasured.bit_count())
        found = None if report is None else known.measured(report, all=True)
        if not reloaded and (found is None or not found.failing.keys() <= known.failing.keys()):
            return (yield from self._all(plan, collected))
        if found is not None and (found.has_lost_lines or len(found.failing) == len(found.tests)):
            return (yield from self._all(plan, collected))
        if skips_anew(known, report):
            return (yield from self._all(plan, collected))
        return found

    def _all(self, plan: TargetPlan, collected: Collected | None) -> Steps:
        live, fresh, _ = self._servers.now
        report, total = None, None if collected is None else len(collected["tests"])
        if live is not None and collected is not None:
            stuck = STUCK_S if collected["native_threads"] else 0
            job: JobMessage = {"work": "measure", "tests": None, "stuck": stuck, "counts": MEASURED}
            report, _ = _in_time((yield Run(live, job, self._world.parts, total, plan.baseline_timeout_s)), plan)
            if report is None and LIMITS in self._world.parts:  # it may have ended the process: who knows
                self._world.drop({LIMITS})
                return (yield from self._all(plan, collected))
            if report is None and stuck:
                self._servers.drop_live(
                    "the tests do not come to their end in a fork of the process that imported them"
                )
                live = None
        if live is None or report is None:
            job = {"work": "measure", "tests": None, "counts": MEASURED}
            report, code = _in_time((yield Run(fresh, job, self._world.parts, total, plan.baseline_timeout_s)), plan)
            if report is None:
                raise Unprepared(
                    f"a test ends pytest itself (exit code {code}), without any mutant",
                    kind="baseline",
                )
            if "durations" not in report:
                raise why_not_collected(report, fresh.printed())
            if live is not None:
                self._servers.drop_live("the tests end the process that is forked for them")
            collected = {**report["collected"], "files": {}}
            reject_elsewhere(collected["elsewhere"])
        assert collected is not None
        baseline = Baseline.of(report, collected)
        if baseline.failing:
            dropped, passed = yield from self._checked(baseline, fresh)
            if dropped:
                self._world.drop(dropped)
                return (yield from self._all(plan, collected))
            failing = {test: text for test, text in baseline.failing.items() if test not in passed}
            baseline = yield from self._tried_again(replace(baseline, failing=failing, fork_unsafe=passed))
        if len(baseline.failing) == len(baseline.tests):
            test, text = next(iter(baseline.failing.items()))
            first = f"{baseline.tests[test]}: {gist(text)}"
            raise Unprepared(
                f"every test fails without any mutant; {first}",
                text,
                kind="baseline",
                failing=[baseline.tests[each] for each in baseline.failing],
            )
        return baseline

    def _checked(
        self, baseline: Baseline, fresh: ServerProcess
    ) -> Generator[Run, Answer, tuple[frozenset[str], frozenset[int]]]:
        """The parts of the world that make tests fail, and the tests that fail in a fork of the session only.

        A test that fails in a plain fresh process fails. One that passes there, and with all parts of the world too,
        can't stand the fork. Otherwise parts are left out, one after the other, until it passes.
        """
        names = {baseline.tests[test] for test in baseline.failing}
        suspicious = names - (yield from self._failing(fresh, names, frozenset()))
        if not suspicious:
            return frozenset(), frozenset()
        left, parts = (yield from self._failing(fresh, suspicious, self._world.parts)), self._world.parts
        for part in DOUBTFUL:
            if left and part in parts:
                parts -= {part}
                left = yield from self._failing(fresh, left, parts)
        passed = frozenset(test for test in baseline.failing if baseline.tests[test] in suspicious)
        return self._world.parts - parts, passed if self._servers.live is not None else frozenset()

    def _tried_again(self, baseline: Baseline) -> Generator[Run, Answer, Baseline]:
        """Some tests that failed in a fork and passed in a fresh process pass in a fork now: they failed by chance."""
        reports: dict[int, Report | None] = {}
        for test in sorted(baseline.fork_unsafe):
            assert self._servers.live is not None
            report, _ = yield Run(self._servers.live, {"work": "measure", "tests": [test]}, self._world.parts)
            if report is not None and not report["failing"]:
                reports[test] = report
        return baseline.with_isolated_runs(reports).with_unsteady(reports)

    def _failing(
        self, fresh: ServerProcess, names: Collection[str], parts: Collection[str]
    ) -> Generator[Run, Answer, set[str]]:
        """Which of the tests fail in a fresh process."""
        report, _ = yield Run(fresh, {"work": "measure", "tests": sorted(names)}, parts)
        if report is None or "durations" not in report:
            return set(names)
        tests = report["collected"]["tests"]
        return {tests[int(test)] for test in report["failing"]} & set(names)


def _restored(saved: Mapping[str, Any], collected: Collected | None) -> Baseline:
    shown: Collected = {
        "tests": saved["tests"],
        "seconds": saved["seconds"],
        "files": (collected or {}).get("files", {}),
        "imported": (collected or {}).get("imported", {}),
    }
    known: dict[str, Any] = {name: frozenset(saved[name]) for name in SETS}
    known["survivors"] = {
        (path, tuple(edit)): Held(int(tests, 16), edited) for path, edit, tests, edited in saved["survivors"]
    }
    known["killers"], known["suites_s"] = saved["killers"], float(saved["suites_s"])
    known |= {name: tuple(map(float, saved[name])) for name in ("set_up", "alone_s")}
    return replace(Baseline.of(saved["report"], shown), **known)


def _in_time(answer: Answer, plan: TargetPlan) -> Answer:
    """Raises Unprepared when the tests were ended by their time limit."""
    if answer[1] == "timeout":
        problem = f"the tests have not ended within {plan.baseline_timeout_s:.0f} s, without any mutant"
        test = COUNTS[MEASURED].running
        raise Unprepared(f"{problem}; {test} was running" if test else problem, kind="timeout")
    return answer


def _key(plan: TargetPlan) -> list[Any]:
    return [
        FORMAT,
        plan.content,
        plan.environment,
        list(plan.arguments),
        list(plan.sources),
        sys.version,
        version("pytest"),
    ]
