"""The transitions of a mutant: what follows, by the stage it is in and what the end of its job has shown.

`TRANSITIONS` is the whole way of a mutant, but for where it begins (`MutantScheduler._route`), for a survivor's next
stage (`survivors`, `unmeasured`), and for how often a test is controlled (`controls`). What each action does stands in
`MutantScheduler` and in `KillConfirmation`.
"""

from __future__ import annotations

import enum

from .mutant_jobs import Stage


class Seen(enum.Enum):
    """The findings that the end of a job may have."""

    NOT_LIVE = "the mutant can't be put into live code"
    PASSED = "all tests of the job passed"
    PASSED_ALONE = "the likely killers passed, and no other test was run"
    SKIPPED = "a test skipped itself that does not in the suite, and other tests were not run"
    FAILED = "a test failed, or was over a time limit"
    FAILED_LATE = "the test failed, in a fork of a process that has collected it long ago"
    ENDED_ALONE = "the process of the likely killers ended without one, and may do so without the mutant"
    ENDED = "pytest ended without a test that could be named: a crash, no collection, a time limit of the whole suite"
    UNSTEADY_PASSED = "the test passed, and it is known to pass and to fail without a mutant"
    DUE_UNDER_LOAD = "the test passed, and is yet to be run under load"
    UNCONFIRMED = "the test passed, it is unsteady, and has not failed often enough with the mutant"


class Action(enum.Enum):
    """The next thing to do."""

    ANSWER = "answer with the verdict as it is"
    SURVIVED = "look for other tests"
    RECORD = "answer, and note that the whole suite passes with the mutant"
    FRESH = "run all tests in a fresh process, but for each that fails without a mutant"
    CONFIRM = "confirm a kill: STEADY, or FRESH_STEADY in a fresh process, or CONTROL"
    CONTROL = "run the killer alone without the mutant, if that is due: CONTROL"
    LOADED = "run it once more so, under load: LOADED"
    AGAIN = "run it once more with the mutant: STEADY or FRESH_STEADY"
    START_ANEW = "start the servers anew, and test all mutants again that are on their way"
    DISTRUST = "the killer fails without the mutant: the suite decides, or the other tests if it is unsteady"
    DISTURBED = "the killer fails under load, so it is unsteady: AGAIN"
    LEAVE_OUT = "test the mutant without the killer"
    KILLED = "answer; after a time limit that was too short, run the tests again"


TRANSITIONS = {
    (Stage.LIVE, Seen.NOT_LIVE): Action.FRESH,
    (Stage.LIVE, Seen.PASSED): Action.SURVIVED,
    (Stage.LIVE, Seen.FAILED): Action.CONFIRM,
    (Stage.LIVE, Seen.ENDED): Action.ANSWER,
    (Stage.SUITE, Seen.NOT_LIVE): Action.FRESH,
    (Stage.SUITE, Seen.PASSED): Action.RECORD,
    (Stage.SUITE, Seen.SKIPPED): Action.FRESH,
    (Stage.SUITE, Seen.FAILED): Action.CONFIRM,
    (Stage.SUITE, Seen.ENDED): Action.ANSWER,
    (Stage.FRESH, Seen.NOT_LIVE): Action.FRESH,
    (Stage.FRESH, Seen.SKIPPED): Action.FRESH,
    (Stage.FRESH, Seen.PASSED_ALONE): Action.FRESH,
    (Stage.FRESH, Seen.ENDED_ALONE): Action.FRESH,
    (Stage.FRESH, Seen.PASSED): Action.RECORD,
    (Stage.FRESH, Seen.FAILED): Action.CONFIRM,
    (Stage.FRESH, Seen.ENDED): Action.ANSWER,
    (Stage.STEADY, Seen.FAILED): Action.CONTROL,
    (Stage.STEADY, Seen.PASSED): Action.FRESH,
    (Stage.STEADY, Seen.UNSTEADY_PASSED): Action.LEAVE_OUT,
    (Stage.FRESH_STEADY, Seen.FAILED): Action.CONTROL,
    (Stage.FRESH_STEADY, Seen.PASSED): Action.FRESH,
    (Stage.FRESH_STEADY, Seen.UNSTEADY_PASSED): Action.LEAVE_OUT,
    (Stage.CONTROL, Seen.PASSED): Action.KILLED,
    (Stage.CONTROL, Seen.DUE_UNDER_LOAD): Action.LOADED,
    (Stage.CONTROL, Seen.UNCONFIRMED): Action.AGAIN,
    (Stage.CONTROL, Seen.FAILED): Action.DISTRUST,
    (Stage.CONTROL, Seen.FAILED_LATE): Action.START_ANEW,
    (Stage.LOADED, Seen.PASSED): Action.KILLED,
    (Stage.LOADED, Seen.UNCONFIRMED): Action.AGAIN,
    (Stage.LOADED, Seen.FAILED): Action.DISTURBED,
    (Stage.SUITE_CONTROL, Seen.PASSED): Action.KILLED,
    (Stage.SUITE_CONTROL, Seen.FAILED): Action.FRESH,
}
