"""Messages from a scheduler to its host: above all the answer about a mutant, with what is known of its tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from .baseline import Baseline
from .dependencies import joined
from .messages import MutantAnswer, Verdict
from .mutant_jobs import ScheduledMutant, Stage


class ToHost(NamedTuple):
    """How a scheduler reaches its host."""

    send: Callable[[Mapping[str, object]], None]  # to the bridge
    note: Callable[[], None]  # that the baseline has become richer
    start_early: Callable[[float], None]  # the early server, which has so many seconds until it is ready
    start_anew: Callable[[], None]  # all servers, which ends this scheduler
    late: set[str]  # tests for which that was done, and whose controls have not passed since


def answer_of(
    baseline: Baseline, mutant: ScheduledMutant, verdict: Verdict, *, live: bool, sound: bool
) -> MutantAnswer:
    """The message for the bridge. `live`: there is a live server; `sound`: see `MutantScheduler.is_sound`."""
    covering = baseline.covering(mutant.path, mutant.change.lines)
    static = baseline.is_static(mutant.path, mutant.change)
    if verdict["status"] == "Survived" and live and not baseline.fork_unsafe:
        seen = covering or static or baseline.is_unseen(mutant.path, mutant.change)
        verdict = verdict if seen else {**verdict, "status": "NoCoverage"}  # no test was seen to run its code
    fresh = mutant.stage in (Stage.FRESH, Stage.FRESH_STEADY)
    return {
        "id": mutant.request,
        "covered": None if baseline.unmeasured else sorted(covering),
        "static": static,
        "unsteady": [baseline.tests[test] for test in sorted(baseline.unsteady)],
        "ran": joined(mutant.ran) if sound else None,
        "tried": None if fresh or verdict["status"] == "Killed" else sorted(mutant.tried),
        **verdict,
    }
