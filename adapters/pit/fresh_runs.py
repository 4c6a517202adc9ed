"""PIT's own verdicts on some mutants, in a fresh copy of the project, with a JVM for each: for `run --verify`.

Theory of operation
-------------------
PIT's plug-in for Maven runs as the pom configures it (`plugin_runs`), but only on the classes of the mutants, and with
a JVM for each mutant. A plug-in for PIT of our own leaves out the other mutants of these classes, each of which would
take a JVM, too, and says how many were tested.

That JVM is not always right: the plug-in for JUnit 5 runs all tests of a class before the mutant is in it, so whatever
the code computes once is computed without the mutant. So where PIT contradicts a result, the class file that PIT has
made of the mutant takes the place of the project's, and PIT's own run of the tests before it mutates anything decides
(`mutated_runs`): they have to pass, as in every run of PIT. The tests are those of the classes that have killed the
mutant, or that cover it, and must pass without it.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import define, frozen

from msp_bridge.adapter import Result
from msp_bridge.concurrency import in_thread
from msp_bridge.phases import Phase, report_phase
from msp_bridge.toolkit import Sandbox

from .builds import TARGET, targets
from .maven import Module
from .mutated_runs import KILLED, TIMED_OUT, MutatedRuns, answers, exported
from .plugin_runs import SAMPLE, PluginRuns, write_sample
from .tool import Tool

PREPARING = "Maven compiles a fresh copy, and PIT runs its tests without mutants"
TESTING = "PIT tests the mutants again"
SETTLING = "where PIT contradicts, its tests run on the mutated class"
TESTED = b"msp-bridge: tested"  # what `programs/SampledMutants.java` prints for each mutant
EXPORT = "+EXPORT"  # a feature of PIT: the class files of the mutants are written beside its report


@frozen
class Chosen:
    """The results that are in question for mutants of `module`, by their keys; `tool` is PIT for it."""

    module: Module
    results: Mapping[str, Result]
    tool: Tool

    def settings(self, jobs: int) -> dict[str, str | tuple[str, ...]]:
        """Make those of the plug-in."""
        return {
            "targetClasses": tuple(sorted({_owner(key) for key in self.results})),
            "features": (*self.module.configuration.lists["features"], EXPORT, SAMPLE),
            "mutationUnitSize": "1",  # mutants of one JVM
            "threads": str(jobs),
        }


@define
class _Counted:
    """How many mutants were tested, as `heard` has it from PIT's run."""

    phase: Phase
    _done: int = 0
    _end: bytes = b""  # of what was heard, without a whole TESTED

    def heard(self, piece: bytes) -> None:
        text = self._end + piece
        self._end = text[1 - len(TESTED) :]
        if TESTED in text:
            self._done += text.count(TESTED)
            self.phase.reached(self._done)


async def fresh_answers(
    root: Path, modules: Sequence[Module], chosen: Sequence[Chosen], jobs: int
) -> dict[tuple[str, str], dict[str, Any]]:
    """PIT's answers, as those of the host, by module and key. `modules` are all of the project. Raises `ToolError`."""
    home = Path(tempfile.mkdtemp(prefix="msp-bridge-"))
    try:
        samples = {
            each.module.name: await in_thread(write_sample, home / f"{at}.jar", each.tool.program, each.results)
            for at, each in enumerate(chosen)
        }
        report_phase(PREPARING)
        plugin = PluginRuns(await in_thread(_copy, home, root), modules, samples)
        counted = _Counted(Phase(TESTING, sum(len(each.results) for each in chosen)))
        await plugin.run({each.module.name: each.settings(jobs) for each in chosen}, heard=counted.heard)
        return {
            (each.module.name, key): answer for each in chosen for key, answer in (await _settled(plugin, each)).items()
        }
    finally:
        await in_thread(shutil.rmtree, home, True)


def _copy(home: Path, root: Path) -> Path:
    sandbox = Sandbox.claim(home, root, left_out=frozenset({TARGET}))
    try:
        sandbox.overlaid |= targets(root)
        sandbox.refresh()
        return sandbox.path
    finally:
        sandbox.close()


async def _settled(plugin: PluginRuns, chosen: Chosen) -> dict[str, dict[str, Any]]:
    """PIT's answers; where they contradict a result, those of the mutated class."""
    reports, runs = plugin.reports(chosen.module), MutatedRuns(plugin, chosen.module)
    found = await in_thread(lambda: dict(answers(reports)))
    files = await in_thread(lambda: {key: file.read_bytes() for key, file in exported(reports)})
    contradicted = [
        (key, result)
        for key, result in chosen.results.items()
        if key in found and key in files and result.status.detected != (found[key]["status"] in (KILLED, TIMED_OUT))
    ]
    for done, (key, result) in enumerate(contradicted):
        report_phase(SETTLING, done, len(contradicted), begins=not done)
        tests = result.killed_by or result.covered_by or ()
        status = await runs.status(_owner(key), files[key], tests)
        if status is not None:
            found[key] |= {"status": status, "killing": []}
    return found


def _owner(key: str) -> str:
    """The name of the class in the key of a mutant: `example.Price.total(I)I[5]…`."""
    return key.partition("(")[0].rpartition(".")[0]
