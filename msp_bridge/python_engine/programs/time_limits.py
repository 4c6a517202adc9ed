"""Time limits: when a mutant has taken too long.

Theory of operation
-------------------
The clock can't tell an endless loop from a machine that is busy: a test that gets a tenth of a CPU takes ten times as
long. CPU time can. But a mutant that waits, for a lock or for a message that nobody sends, takes none. So a job has
three limits:

- *CPU time*, for the test that runs: an endless loop in it. Not for all tests of the job: beside tests that take 30 s,
  a loop would have ten minutes. It is the time of the job's process and of all below it: a mutant may loop in a process
  that it has started. So the fork server reads it from /proc, where there is one. RLIMIT_CPU holds for each
  process by itself, it kills one that a test has started, which then is a failure, and tests can see and change it.
- *The clock*, for all tests of the job, as the tool has it: (t + s) * factor. Where the user has set these it is the
  only one.
- *The clock*, for the test that runs, by the same rule with its own time: beside tests that take a minute, one that
  waits for a message would have a quarter of an hour.

The two limits for the test that runs go by its own time. In a fresh process they go by the longest one of the job: with
the mutant, others may be collected, or in another order. What collecting takes is allowed for the first test only.

What a test takes is known from the suite. Alone it may take more: it pays for the fixtures of the session and for what
earlier tests have put into caches. The suite does not tell that. So a limit that is over is no verdict yet: it is a
failure of the test that ran, and is confirmed as one (`kill_confirmation`): by a run of that test alone without the
mutant, with no limit of CPU time. What this took beyond its time in the suite is the *set-up*. The limits of all later
jobs allow for the longest one, and a mutant whose limits did not is run again. It is kept with the baseline. Where a
fresh process runs all tests in their order, as the suite does, a time-out is final.

A test whose time is not known yet is taken for one of `UNMEASURED_S`. A mutant whose tests have such limits is never
over them for good: where the control passes, it waits until all tests are measured, and begins again. What the control
took is the time of the test then, and no set-up.

The time of a test by the clock stands for its CPU time, which is not measured. It is no less, unless several processes
or threads work at once; the control of the test counts these.
"""

from __future__ import annotations

from collections.abc import Sequence

from .channel import TargetPlan
from .messages import JobMessage, Report

LEAST_CPU_S, CPU_FACTOR = 2.0, 20.0  # the least limit for a test, and times what it takes
UNMEASURED_S = 3.0  # that a test is taken for whose time is not known
SET_UP_FACTOR = 3.0  # times what a test may have to set up
SetUp = tuple[float, float]  # by the clock, and of CPU time


def limits_of_mutant(plan: TargetPlan, seconds: float, tests: Sequence[float], set_up: SetUp) -> JobMessage:
    """The limits of a job with a mutant that takes `seconds` without it, and of which its tests take `tests`."""
    limits = limits_without(plan, seconds + set_up[0])
    if plan.cpu_limited:
        limits["cpu_limits"] = [max(LEAST_CPU_S, CPU_FACTOR * test) + SET_UP_FACTOR * set_up[1] for test in tests]
        limits["test_limits"] = [_by_the_clock(plan, test + SET_UP_FACTOR * set_up[0]) for test in tests]
    return limits


def limits_without(plan: TargetPlan, seconds: float) -> JobMessage:
    """The limits of a job without a mutant, which takes about so long."""
    return {"limit": _by_the_clock(plan, seconds)}


def _by_the_clock(plan: TargetPlan, seconds: float) -> float:
    return (seconds + plan.limit[0]) * plan.limit[1]


def longer(known: SetUp, report: Report, seconds: float) -> SetUp:
    """`known`, or more, by the report of a test that has run alone, without a mutant, and was to take `seconds`."""
    return max(known[0], report["seconds"] - seconds), max(known[1], report["cpu"] - seconds)


def were_short(allowed: SetUp, known: SetUp) -> bool:
    """Whether limits that allow for one set-up say nothing, since another one is known."""
    return any(more > less + LEAST_CPU_S / SET_UP_FACTOR for less, more in zip(allowed, known, strict=True))
