"""Host: a resident JVM of ours that knows the mutants of one module (`programs/PitHost.java`).

Theory of operation
-------------------
The problem. Requests share what is expensive: the list of mutants, and the run of all tests that says which tests cover
which mutant. Any of them may be cancelled at any await, and what runs for it alone must have ended then.

- A question of that kind is asked once, by a task that belongs to nobody (`Shared`). When nobody waits for it any
  more, the process is ended, and with it the JVMs that it has started; but not while another request uses it. It is
  started again when it is needed.
- A request that needs the answer no more has not been cancelled: the question goes on for the next one (`go_on`), until
  that is cancelled, the files change or the bridge ends.
- Tests run to see which of them cover which mutant: all the first time, and some after an edit. Meanwhile the tests
  that covered a mutant before are run with it (`kill`), and the first time tests that are likely to kill it
  (`programs/LikelyTests.java`). If one of them does, that holds, whatever else covers it. All other verdicts wait.
- A mutant is tested for one request, by a tester that it borrows (`testers`), where that is in doubt by all tests there
  (`suites`), or by a JVM that the host starts for it. When the request is cancelled, the JVM of this mutant is ended,
  and the cancel is raised when that is done. The host and what it knows stay.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import tempfile
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

from attrs import define, field

from msp_bridge.adapter import BaselineError, ToolError
from msp_bridge.concurrency import in_thread, shielded
from msp_bridge.phases import BASELINE, report_phase
from msp_bridge.toolkit import JsonLinesProcess

from .installation import java
from .kept import KeptCoverage
from .listing import KILLED, NO_COVERAGE, SURVIVED, all_ran, calling_line, failing_tests
from .maven import QUICK_START, Module
from .suites import Suite
from .testers import NATIVE, UNCOVERED, Launch, Testers, World, has_class
from .tool import Tool

T = TypeVar("T")
NAME = "PIT's host"
SHOWN_CHARS = 600  # of PIT's messages
SHOWN_TESTS = 5
REMEDY = "make `mvn test` pass, and leave out what fails in PIT alone, by excludedTestClasses or skipFailingTests"


@define
class Shared(Generic[T]):
    """The answer to a question that several requests wait for."""

    ask: Callable[[], Coroutine[Any, Any, T]]
    abandon: Callable[[], Awaitable[None]]  # nobody waits for the answer any more
    waiting: int = field(default=0, init=False)
    _goes_on: bool = field(default=False, init=False)  # nobody needs to wait, until it is asked again
    _task: asyncio.Task[T] | None = field(default=None, init=False)

    @property
    def known(self) -> bool:
        """Whether `answer` answers at once."""
        return self._task is not None and self._task.done() and self._task.exception() is None

    @property
    def running(self) -> bool:
        """Whether the question is being answered."""
        return self._task is not None and not self._task.done()

    def go_on(self) -> None:
        """Let the next request have the answer, although the one that waits alone is about to end."""
        self._goes_on = self.waiting == 1

    async def answer(self) -> T:
        """Wait for the answer; the first call asks, and one after a failure."""
        self._goes_on = False
        if self._task is None or (self._task.done() and self._task.exception() is not None):
            self._task = asyncio.create_task(self.ask(), name=NAME)
            self._task.add_done_callback(lambda task: task.cancelled() or task.exception())  # it may have no asker
        self.waiting += 1
        try:
            return await asyncio.shield(self._task)
        finally:
            self.waiting -= 1
            if not (self.waiting or self._goes_on or self._task.done()):
                await shielded(self.abandon())


class Host:
    """The process of one module in one state of its files. Errors: `ToolError`, `BaselineError`."""

    def __init__(self, module: Module, tool: Tool, directory: Path, world: World, kept: KeptCoverage | None) -> None:
        self._module, self._tool, self._directory, self._world, self._kept = module, tool, directory, world, kept
        self._settings = settings(module, tool, directory)
        self._process: JsonLinesProcess
        self._parts: frozenset[str]  # of its world
        self._processes: list[JsonLinesProcess] = []  # one more for each try to measure in another world
        self._measurement: dict[str, Any]
        self._failure: dict[str, Any]  # of tests without a mutant
        self._closed = False
        self._testers: Testers | None = None  # where mutants of the module may share a JVM
        self._suite: Suite | None = None  # there, after the measurement
        self.has_uncovered = False  # its tests may run code without coverage: they decide on what none covers, too
        # Every mutant: `key`, `package`, `file`, `line`, `mutator`, `description`.
        self.listed = Shared(self._list, self._abandoned)
        # The names of the tests that cover a mutant, by its key. Tests run to find out, as far as none is kept.
        self.measured = Shared(self._measure, self._abandoned)
        self._foreseen = Shared(self._foresee, self._abandoned)
        self._likely_for: Sequence[str] = ()
        self._testing = 0  # mutants

    @classmethod
    async def start(cls, module: Module, tool: Tool, directory: Path, world: World, kept: KeptCoverage | None) -> Host:
        """Start it; `directory` is for temporary files, its own and those of the tests. `kept` is None: measure."""
        host = cls(module, tool, directory, world, kept)
        host._process, host._parts = await host._started()
        return host

    async def _started(self) -> tuple[JsonLinesProcess, frozenset[str]]:
        """Start a process in the world that is wanted now; the parts of that."""
        class_path = ":".join([str(self._tool.program), *self._tool.class_path])
        argv = [java(), QUICK_START, f"-Djava.io.tmpdir={self._directory}", "-cp", class_path, "PitHost"]
        home = Path(tempfile.mkdtemp(dir=self._directory))
        command, parts = await self._world.command(argv, home, [self._directory])
        process = await JsonLinesProcess.start(command, name=NAME, cwd=self._module.configuration.directory)
        self._processes.append(process)
        try:
            if self._closed:
                raise ToolError("PIT was ended", "try again")
            _checked(await process.ask({"do": "open", "settings": self._settings}))
        except BaseException:
            await process.close()
            raise
        return process, parts

    @property
    def closed(self) -> bool:
        """Whether it answers no more."""
        return self._closed or self._process.closed

    async def close(self) -> None:
        """End it and all JVMs that it has started."""
        self._closed = True
        if self._testers is not None:
            await self._testers.close()
        await asyncio.gather(*(process.close() for process in self._processes))

    async def foresee(self, keys: Sequence[str]) -> bool:
        """Prepare `kill`, the first time for mutants of these `keys`. False: it is not needed, or it can't be done."""
        if not (self._foreseen.known or await in_thread(self._may_foresee)):
            return False
        await self.listed.answer()
        self._likely_for = self._likely_for or keys
        await self._foreseen.answer()
        return True

    def _may_foresee(self) -> bool:
        known = self._known()
        kept = known.get("kept")
        is_current = kept is not None and kept["tree"] == known["tree"]
        in_groups = self._settings["includedGroups"] or self._settings["excludedGroups"]  # a test may be in another now
        return bool(known) and not (is_current or in_groups) and self._may_share()

    async def _foresee(self) -> None:
        report_phase(BASELINE)
        kept = (await in_thread(self._known))["kept"]
        self._share((await self._ask({"do": "foresee", "kept": kept, "keys": self._likely_for}))["agent"])

    async def kill(self, key: str) -> dict[str, Any] | None:
        """Test a mutant, like `test`, by the tests that `foresee` has named. None: they don't kill it."""
        arguments = await self._arguments(key)
        answer = await self._testers.test(arguments) if self._testers and arguments else {}
        return answer if answer.get("status") == KILLED else None

    async def test(self, key: str) -> dict[str, Any]:
        """Test a mutant: `status` and `exit` in PIT's words, `killing` tests, how many tests have `run`, an `error`."""
        tests = (await self.measured.answer())[key]
        self._testing += 1
        try:
            arguments = await self._arguments(key, uncovered=not tests) if self._testers is not None else None
            answer: dict[str, Any] = {} if tests else {"status": NO_COVERAGE, "killing": [], "run": None}
            if tests and arguments and self._testers:
                answer = await self._testers.test(arguments)
            status, is_open = answer.get("status"), answer.get("open", False)
            if (status is None and not is_open) or (status == SURVIVED and not all_ran(tests, answer["run"])):
                answer = {"error": answer.get("error")} | await self._test_alone(key)
            if arguments and self._suite and (is_open or answer["status"] in (SURVIVED, NO_COVERAGE)):
                answer |= await self._suite.verdict(arguments, answer)
            return answer if "status" in answer else answer | await self._test_alone(key)
        finally:
            self._testing -= 1

    async def _arguments(self, key: str, *, uncovered: bool = False) -> str | None:
        question = {"do": "arguments", "key": key} | ({"uncovered": True} if uncovered else {})
        arguments: str | None = (await self._ask(question))["arguments"]
        return arguments

    async def _test_alone(self, key: str) -> dict[str, Any]:
        """Test it in a minion of PIT's own, started for it."""
        question, answer = self._process.post({"do": "test", "key": key})
        try:
            return _checked(await answer)
        except asyncio.CancelledError:
            with contextlib.suppress(ToolError):
                await shielded(self._process.ask({"do": "stop", "of": question}))
            raise

    async def _abandoned(self) -> None:
        if not (self._testing or self._foreseen.waiting or self.listed.waiting or self.measured.waiting):
            await self.close()

    async def _list(self) -> list[dict[str, Any]]:
        answer = await self._ask({"do": "list"})
        debug = answer["debug"]
        return [row | {"line": calling_line(debug.get(row["class"], ""), row["line"])} for row in answer["mutants"]]

    async def _measure(self) -> Mapping[str, tuple[str, ...]]:
        report_phase(BASELINE)
        known, parts = await in_thread(self._known), self._parts
        if not await self._world.decide(partial(self._is_measured, known)):
            failing = failing_tests(self._failure["printed"])
            named = ", ".join(failing[:SHOWN_TESTS]) + (" …" if len(failing) > SHOWN_TESTS else "")
            problem = f"tests fail without any mutant: {named or self._failure['error'][:SHOWN_CHARS]}"
            raise BaselineError(problem, REMEDY, failing)
        answer = _checked(self._measurement)
        names = answer["names"]
        if self._kept is not None and answer["keep"] is not None and parts == self._parts:
            await in_thread(self._kept.save, answer["keep"])
        if await in_thread(self._may_share):
            self._suite = Suite(self._share(answer["agent"]), answer["suite"])
            self.has_uncovered = await in_thread(self._has_class, UNCOVERED)
        return {key: tuple(names[number] for number in numbers) for key, numbers in answer["tests"].items()}

    async def _is_measured(self, known: Mapping[str, Any]) -> bool:
        """Measure in the world that is wanted now; False if tests fail there."""
        process, parts = self._process, self._parts
        if self._world.isolation.wanted != parts:
            process, parts = await self._started()
        answer = await process.ask({"do": "measure", **known})
        if "did not pass without mutation" in answer.get("error", ""):
            self._failure = answer
            return False
        self._process, self._parts, self._measurement = process, parts, answer
        return True

    def _may_share(self) -> bool:
        return not (self._module.configuration.flags["fullMutationMatrix"] or self._has_class(NATIVE))

    def _has_class(self, pattern: re.Pattern[bytes]) -> bool:
        configuration = self._module.configuration
        return has_class(pattern, configuration.classes, configuration.test_classes)

    def _share(self, agent: str) -> Testers:
        if self._testers is None:
            jvm_arguments = [f"-javaagent:{agent}", *self._settings["quickJvmArgs"]]
            launch = Launch.of(self._module, self._tool, self._settings["classPath"], jvm_arguments)
            self._testers = Testers(launch, self._world)
        return self._testers

    def _known(self) -> dict[str, Any]:
        if self._kept is None:
            return {}
        return {"tree": self._kept.tree, "kept": None if self._foreseen.known else self._kept.find()}

    async def _ask(self, question: Mapping[str, Any]) -> dict[str, Any]:
        return _checked(await self._process.ask(question))


def settings(module: Module, tool: Tool, directory: Path) -> dict[str, Any]:
    """Make what `programs/Analysis.java` reads. PIT's own class path comes last, so the project's versions count."""
    configuration = module.configuration
    lists = dict(configuration.lists)
    lists["targetClasses"] = lists["targetClasses"] or occupied_packages(configuration.classes)
    lists["targetTests"] = lists["targetTests"] or occupied_packages(configuration.test_classes)
    lists["jvmArgs"] = (f"-Djava.io.tmpdir={directory}", *lists["jvmArgs"])
    compiled = (str(configuration.test_classes), str(configuration.classes))
    return {
        **lists,
        "quickJvmArgs": (QUICK_START, *lists["jvmArgs"]),  # not for PIT's minions, which have the last word
        **configuration.flags,
        "classPath": [*compiled, *module.class_path, *tool.class_path],
        "codePaths": [str(configuration.classes)],
        "sources": list(map(str, configuration.sources)),
        "timeoutConstant": configuration.timeout_constant_ms,
        "timeoutFactor": configuration.timeout_factor,
        "reports": str(directory),
        "base": str(configuration.directory),
        "environment": dict(configuration.environment),
    }


def occupied_packages(classes: Path) -> tuple[str, ...]:
    """The packages that have class files, as patterns: what PIT takes where the configuration names none. Blocks."""
    packages = {file.parent.relative_to(classes).as_posix().replace("/", ".") for file in classes.rglob("*.class")}
    return tuple("*" if package == "." else f"{package}.*" for package in sorted(packages))


def _checked(answer: dict[str, Any]) -> dict[str, Any]:
    if "error" in answer:
        text = " ".join(answer["error"].split())[:SHOWN_CHARS]
        raise ToolError(f"PIT fails: {text}", "run `mvn pitest:mutationCoverage`, which says more")
    return answer
