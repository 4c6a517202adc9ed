"""PIT's own verdicts on some mutants, in a fresh copy of the project, with a JVM for each: for `run --verify`.

Theory of operation
-------------------
PIT's plug-in for Maven runs as the pom configures it (`plugin_runs`), but only on the classes of the mutants, in these
on their methods, and with a JVM for each mutant.

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

from attrs import frozen

from msp_bridge.adapter import Result
from msp_bridge.concurrency import in_thread
from msp_bridge.toolkit import Sandbox

from .builds import TARGET, targets
from .maven import Module
from .mutated_runs import KILLED, TIMED_OUT, MutatedRuns
from .plugin_runs import PluginRuns
from .report import answers, exported

EXPORT = "+EXPORT"  # a feature of PIT: the class files of the mutants are written beside its report


@frozen
class Chosen:
    """The results that are in question for mutants of `module`, by their keys, among all that it has."""

    module: Module
    results: Mapping[str, Result]
    known: Sequence[str]

    def settings(self, jobs: int) -> dict[str, str | tuple[str, ...]]:
        """Make those of the plug-in: they leave other methods out, as far as names tell them apart."""
        places = set(map(_place, self.results))
        classes, methods = ({place[part] for place in places} for part in (0, 1))
        others = {method for owner, method in map(_place, self.known) if owner in classes} - methods
        lists = self.module.configuration.lists
        return {
            "targetClasses": tuple(sorted(classes)),
            "excludedMethods": tuple(sorted({*others, *lists["excludedMethods"]})),
            "features": (*lists["features"], EXPORT),
            "mutationUnitSize": "1",  # mutants of one JVM
            "threads": str(jobs),
        }


async def fresh_answers(root: Path, chosen: Sequence[Chosen], jobs: int) -> dict[tuple[str, str], dict[str, Any]]:
    """PIT's answers, as those of the host, by module and key. `chosen` has all modules. Raises `ToolError`."""
    home = Path(tempfile.mkdtemp(prefix="msp-bridge-"))
    try:
        plugin = PluginRuns(await in_thread(_copy, home, root), [each.module for each in chosen])
        asked = [each for each in chosen if each.results]
        await plugin.run({each.module.name: each.settings(jobs) for each in asked})
        return {
            (each.module.name, key): answer for each in asked for key, answer in (await _settled(plugin, each)).items()
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
    for key, result in chosen.results.items():
        answer = found.get(key)
        if answer is None or key not in files or result.status.detected == (answer["status"] in (KILLED, TIMED_OUT)):
            continue
        tests = result.killed_by or result.covered_by or ()
        status = await runs.status(_place(key)[0], files[key], tests)
        if status is not None:
            answer |= {"status": status, "killing": []}
    return found


def _place(key: str) -> tuple[str, str]:
    """The names of class and method in the key of a mutant: `example.Price.total(I)I[5]…`."""
    owner, _, method = key.partition("(")[0].rpartition(".")
    return owner, method
