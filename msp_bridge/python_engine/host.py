"""The bridge's side of the process that tests mutants in one sandbox, from its start to its end."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar, cast

from attrs import define, field

from msp_bridge.adapter import RanAlone, Reach
from msp_bridge.concurrency import in_thread, shielded
from msp_bridge.errors import BaselineError, ToolError
from msp_bridge.model import Dependencies, Mutant, Ran, Result, Status
from msp_bridge.notices import FailingTest, Notice
from msp_bridge.phases import BASELINE, COLLECTING, WHOLE_SUITE, report_phase
from msp_bridge.python_engine import remarks
from msp_bridge.python_engine.plan import TestPlan
from msp_bridge.python_engine.program import start_program
from msp_bridge.python_engine.programs import messages
from msp_bridge.python_engine.programs.loaded_modules import have_changed
from msp_bridge.python_engine.programs.messages import MutantAnswer, Request, Summary
from msp_bridge.python_engine.remedies import elsewhere, remedy_of
from msp_bridge.text import counted
from msp_bridge.toolkit import unwritable
from msp_bridge.toolkit.json_lines import Answer, JsonLinesProcess, ProcessEnded
from msp_bridge.toolkit.sandbox import Sandbox
from msp_bridge.toolkit.tree import Kind

log = logging.getLogger(__name__)

T = TypeVar("T")

STOP_S = 1.5  # for the end of a mutant; a cancel is answered within 2 s
COMPARED = (".py", ".md", ".rst")  # files of which the host knows which ones have changed (`programs.kept`)
PREFIX = "msp-"  # of the names of temporary directories; short: some tests put sockets there


class Interrupted(Exception):
    """The mutant was being tested when a file changed, or the host was given up: its tests were ended."""


@define(eq=False)
class Host:
    """One host process. Raises ProcessEnded everywhere when the process has ended.

    What tests write to temporary directories goes to one of the host's own, and is deleted with it.
    """

    _process: JsonLinesProcess
    _scratch: tempfile.TemporaryDirectory[str]
    _home: Path
    _on_wait: Callable[[], None]  # called when one more mutant waits for the measurement
    tests: list[str] = field(factory=list, init=False)  # their names
    failing: dict[str, str] = field(factory=dict, init=False)  # tests that fail without any mutant, and why
    notices: dict[Notice, None] = field(factory=dict, init=False)  # for each request that it tests mutants of
    isolation: tuple[str, ...] = field(default=(), init=False)  # what is isolated for each mutant
    restarts: bool = field(default=False, init=False)  # it collects the tests, or runs all of them without a mutant
    is_prepared: bool = field(default=False, init=False)  # it knows the tests, or is about to measure them
    is_measuring: bool = field(default=False, init=False)  # not all tests are measured
    _outside: Mapping[str, list[int]] = field(factory=dict, init=False)  # files of modules beside the project
    _imported: Ran | None = field(default=None, init=False)  # what collecting the tests depends on
    _ran_alone: dict[str, Ran] = field(factory=dict, init=False)  # what else tests depend on that were run alone
    _pending: dict[int, contextvars.Context] = field(factory=dict, init=False)  # questions, each with its request's
    waiting: set[int] = field(factory=set, init=False)  # questions about mutants that wait for the measurement
    _given_up: bool = field(default=False, init=False)  # we ended it: its mutants are not to blame

    @classmethod
    async def start(
        cls,
        python: Path,
        options: Mapping[str, object],
        *,
        sandbox: Path,
        env: Mapping[str, str | None],
        on_wait: Callable[[], None],
    ) -> Host:
        """In the sandbox. Raises ToolError."""
        home = sandbox.parent
        made: list[tempfile.TemporaryDirectory[str]] = []
        try:
            await in_thread(lambda: made.append(_scratch(home / "scratch")))
        except OSError as error:
            raise ToolError(
                f"no temporary directory for the tests can be made: {error}", "free some space, or set TMPDIR elsewhere"
            ) from error
        except asyncio.CancelledError:
            for scratch in made:
                scratch.cleanup()
            raise
        [scratch] = made
        try:
            process = await start_program(
                python,
                "host",
                {**options, "home": str(home)},
                name="the process of the tests",
                cwd=sandbox,
                env={**env, "TMPDIR": scratch.name},
            )
        except BaseException:
            scratch.cleanup()
            raise
        return cls(process, scratch, home, on_wait)

    @property
    def closed(self) -> bool:
        """Whether it has ended."""
        return self._process.closed

    async def prepare(self, plan: TestPlan, changed: frozenset[str], sandbox: Sandbox, root: Path) -> None:
        """Collect the tests and run them without a mutant, where need be. Raises ToolError.

        `changed` are the files of `sandbox` that have changed since the last time.
        `root` is the project's: remedies are commands that are typed there.
        """
        self.is_prepared = False
        # Its phases belong to the request that prepares it, not to the one that started the process.
        context = contextvars.copy_context()
        self._process.on_notice = lambda notice: context.run(self._notice, notice)
        rows = (row for row in sandbox.records.items() if row[0].endswith(COMPARED) and row[1].kind is Kind.FILE)
        files = {path: record.digest for path, record in rows}
        message = plan.message(sandbox.digest_without(files), files)
        question: Request = {"do": "prepare", "changed": sorted(changed), "plan": message}
        try:
            async with asyncio.timeout(plan.baseline_timeout_s):
                answer = await self._process.ask(question)
        except TimeoutError:
            problem = f"the tests have not ended within {plan.baseline_timeout_s:.0f} s, without any mutant"
            answer = {"error": problem, "kind": "timeout"}
        finally:
            self.restarts = False
        if "errno" in answer:
            raise unwritable(self._home, OSError(answer["errno"], answer["error"]))
        if "error" in answer:
            raise self._error(answer, plan, root)

    def _prepared(self, answer: Summary) -> None:
        """Note what `prepare` has found, in the order of messages: its answer may be read after a later one."""
        self._ran_alone.clear()
        self._imported = None if answer["imported"] is None else _ran(answer["imported"])
        self.is_prepared = True
        self._know(answer)

    def _know(self, answer: Summary) -> None:
        """Note the facts of the tests or, while they are measured, of the collection."""
        self.tests, self.failing, self._outside = answer["tests"], answer["failing"], answer["outside"]
        self.isolation = tuple(answer["isolation"])
        self.is_measuring = answer["measuring"]
        self.notices = {FailingTest(test, why): None for test, why in sorted(self.failing.items())}
        if not self.is_measuring:
            self.notices.update(dict.fromkeys(remarks.of_tests(answer)))
            log.info(
                "the tests are ready (%s, %s in %.2f s); isolated per mutant: %s",
                counted(len(self.tests), "test"),
                answer["how"],
                answer["seconds"],
                ", ".join(self.isolation) or "a process",
            )

    def is_outdated(self) -> bool:
        """Whether modules that it has loaded have changed, outside of the project. Blocks."""
        return have_changed(self._outside)

    async def settle(self) -> None:
        """Wait until all tests are measured, or can't be: then it is to be prepared once more."""
        with contextlib.suppress(Interrupted):  # nobody measures any more
            await self._answer({"do": "settle"}, bool)

    async def unsteady_tests(self) -> dict[str, str]:
        """Run all tests twice more, without a mutant, once under load: which can't be relied on, and why."""
        answer = await self._process.ask({"do": "check"})
        found: dict[str, str] = answer["unsteady"]
        return found

    def test(self, mutant: Mutant, batch: int) -> Awaitable[Result | None]:
        """The verdict; None when the sandbox has another version of the file. Raises Interrupted.

        `batch` numbers the request: the newest goes first.
        Cancelling waits until the mutant's processes are gone.
        """
        edit = mutant.handle
        row = [mutant.path, edit.source.digest, edit.start, edit.end, edit.normal_replacement]
        return self._answer({"do": "test", "edit": row, "batch": batch}, partial(self._result, mutant))

    async def reach(self, mutants: Sequence[Mutant], known: RanAlone, *, alone: bool) -> dict[Mutant, Reach]:
        """Implement `KnowsReach.reach`. Raises Interrupted. `known` holds for the host's files at the call."""
        question: Request = {
            "do": "reach",
            "mutants": [[each.path, each.handle.source.digest, each.handle.start, each.handle.end] for each in mutants],
            "alone": alone,
            "functions": known.functions,
            "ran_alone": {test: sorted(ran) for test, ran in known.tests.items()},
        }
        return await self._answer(question, partial(self._reach, mutants))

    def _reach(self, mutants: Sequence[Mutant], answer: Answer) -> dict[Mutant, Reach]:
        if not answer["sound"]:
            return {}
        sets = {mask: self._names(mask) for row in answer["reach"] if row is not None for mask in row}
        return {
            mutant: Reach(sets[row[0]], frozenset(sets[row[1]]))
            for mutant, row in zip(mutants, answer["reach"], strict=True)
            if row is not None
        }

    @property
    def ran_alone(self) -> dict[str, tuple[Ran, ...]]:
        """Implement `KnowsReach`."""
        return {} if self._imported is None else {test: (self._imported, ran) for test, ran in self._ran_alone.items()}

    async def _answer(self, question: Request, read: Callable[[Answer], T]) -> T:
        """Ask a question that can be stopped; `read` makes the result of the answer. Raises Interrupted."""
        number, future = self._process.post(question)
        self._pending[number] = contextvars.copy_context()
        try:
            answer = await asyncio.shield(future)
        except asyncio.CancelledError:
            await shielded(self._stop([number], [future]))
            raise
        except ProcessEnded:
            if self._given_up:
                raise Interrupted from None
            raise
        finally:
            del self._pending[number]
            self.waiting.discard(number)
        if answer.get("status") == "stopped":
            raise Interrupted
        return read(answer)

    def _names(self, mask: str) -> tuple[str, ...]:
        number = int(mask, 16)
        return tuple(name for test, name in enumerate(self.tests) if number >> test & 1)

    async def interrupt(self) -> None:
        """End the jobs of all mutants that are being tested; their `test` raises Interrupted."""
        await self._stop(list(self._pending), [])

    async def close(self) -> None:
        """End it, its jobs, and what those have left; idempotent."""
        await self._process.close()
        await in_thread(self._scratch.cleanup)

    def _notice(self, notice: Answer) -> None:
        if "ran_alone" in notice:
            log.info("%s run alone, which shows what they run then", counted(notice["count"], "test"))
            self._ran_alone.update({test: _ran(report) for test, report in notice["ran_alone"].items()})
        elif "prepared" in notice:
            self._prepared(notice["prepared"])
        elif "measured" in notice:
            self._know(notice["measured"])
        elif "unprepared" in notice:
            self.is_prepared = self.is_measuring = False
        elif "waits" in notice:
            if notice["waits"] in self._pending:  # else it has been cancelled meanwhile
                self.waiting.add(notice["waits"])
                self._on_wait()
        elif "suite" in notice:
            self._tell_suite(notice)
        elif "tests_run" in notice:
            report_phase(BASELINE, notice["tests_run"], notice["of"], notice["long"], begins=not notice["tests_run"])
        else:
            self.restarts = True
            report_phase(COLLECTING)

    def _tell_suite(self, notice: Answer) -> None:
        """All tests are run with a mutant: to the request of that mutant."""
        context, done = self._pending.get(notice["suite"]), notice["tests_run"]
        if context is not None:
            context.run(report_phase, WHOLE_SUITE, done, notice["of"], begins=not done)

    async def _stop(self, numbers: list[int], futures: list[asyncio.Future[Answer]]) -> None:
        """Returns when their jobs are gone. A host that somebody has stopped (SIGSTOP) does not answer: it is ended."""
        with contextlib.suppress(ToolError):  # a host that has ended has no jobs
            try:
                async with asyncio.timeout(STOP_S):
                    await self._process.ask({"do": "stop", "ids": numbers})
                    await asyncio.gather(*futures)
            except TimeoutError:
                log.warning(
                    "the process of the tests did not end what was cancelled within %g s, and was ended", STOP_S
                )
                self._given_up = True
                await self._process.close()

    def _error(self, answer: Answer, plan: TestPlan, root: Path) -> ToolError:
        if answer.get("output") and root.is_dir():  # else what broke follows from that
            log.info("%s\n%s", answer["error"], answer["output"])
        if (remedy := elsewhere(answer.get("kind"), plan.python)) is not None:
            return ToolError(answer["error"], remedy)
        if answer.get("kind") == "timeout":
            remedy = f"see which test hangs (`python -m pytest -v`) and fix it, or {plan.remedy}"
            return BaselineError(answer["error"], remedy)
        if answer.get("kind") in (None, "none"):
            return ToolError(answer["error"], plan.remedy if "kind" in answer else None)
        output = answer.get("output", "")
        remedy = remedy_of(f"{answer['error']}\n{output}", plan, root) or f"fix it, or {plan.remedy}"
        return BaselineError(answer["error"], remedy, answer.get("failing", ()), output)

    def _result(self, mutant: Mutant, message: Answer) -> Result | None:
        if message["status"] == "stale":
            return None
        answer = cast(MutantAnswer, message)
        self.notices.update(dict.fromkeys(remarks.of_unsteady(answer.get("unsteady", ()))))
        killer, seconds = answer.get("killed_by"), answer.get("seconds")
        known = answer["covered"] is not None  # else not all tests were measured yet
        covered = tuple(self.tests[test] for test in answer["covered"] or ())
        return Result(
            mutant,
            Status(answer["status"]),
            duration=None if seconds is None else round(seconds * 1000, 3),
            covered_by=covered
            or (() if known and not answer["static"] else None),  # what runs at import does so for no test alone
            killed_by=(killer,) if killer else None,
            static=answer["static"],
            status_reason=answer.get("reason"),
            tests_completed=answer.get("tests"),
            dependencies=self._dependencies(answer),
            # Else nobody would hear of these tests in the next run.
            reusable=not self.failing and not answer.get("unsteady"),
        )

    def _dependencies(self, answer: MutantAnswer) -> Dependencies | None:
        if self._imported is None or (ran := answer.get("ran")) is None:
            return None
        tried = answer["tried"]
        tests = None if tried is None else frozenset(self.tests[test] for test in tried)
        return Dependencies((self._imported, _ran(ran)), tests)


def _ran(report: messages.Ran) -> Ran:
    functions = frozenset((path, name) for path, names in report["functions"].items() for name in names)
    return Ran(functions, frozenset(report["texts"]))


def _scratch(record: Path) -> tempfile.TemporaryDirectory[str]:
    """A new temporary directory; that of a host whose bridge was killed, and which is on `record`, is deleted."""
    with contextlib.suppress(OSError, ValueError):
        old = Path(record.read_text("utf-8"))
        if old.name.startswith(PREFIX) and old.parent == Path(tempfile.gettempdir()) and not old.is_symlink():
            shutil.rmtree(old, ignore_errors=True)
    scratch = tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True)
    with contextlib.suppress(OSError):  # should the bridge be killed then, nobody deletes it
        record.write_text(scratch.name, "utf-8")
    return scratch
