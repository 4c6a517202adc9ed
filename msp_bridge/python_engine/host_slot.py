"""A slot: a sandbox of the project with a host in it, kept up to date with the user's files.

Theory of operation
-------------------
Files change while mutants are tested. Before each mutant its own file is looked at, and every half second the whole
tree. A change ends the jobs that run; the sandbox is brought up to date, the host prepared anew, and those mutants
begin again.

A file that changes all the time (a log, what a dev server writes) must not keep a request from its end. So each
request has a *budget* of changes that are followed while it runs: `RESTARTS` for Python files, which users edit, and
one for all others. What changes beyond it is named by a remark and counts from the next request on: mutants of the file
itself get no result (`Adapter.test`), all others go on with the sandbox as it is. A file whose bytes are the same has
not changed.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path

from msp_bridge.adapter import AskRanAlone, Project, Reach
from msp_bridge.concurrency import in_thread
from msp_bridge.errors import ToolError
from msp_bridge.model import Mutant, Result
from msp_bridge.notices import Notice, Remark
from msp_bridge.python_engine.host import Host, Interrupted
from msp_bridge.python_engine.plan import TestPlan
from msp_bridge.python_engine.program import python_environment
from msp_bridge.text import enumerated
from msp_bridge.toolkit import (
    ProcessEnded,
    Sandbox,
    SandboxPool,
    WarmSandbox,
    identity,
    wanted_isolation,
    writes_in,
)
from msp_bridge.toolkit.json_lines import forget_bytecode, is_damaged_bytecode

log = logging.getLogger(__name__)

RESTARTS = 3  # that changes of Python files may cause in a request
MOST_WAITING = 50  # mutants for which others are tested
SHOWN_FILES = 3  # in the remark on files that have changed too often
LOOK_AGAIN_S = 0.5  # during a run after which the user may have saved a file
BARRIER = b"[pytest]\n"  # pytest looks for its configuration in all directories above, up to the root of the disk

HostPool = SandboxPool[Sandbox, Host]


class HostSlot:
    """Tests mutants in one sandbox, which belongs to it from the first use until `aclose`."""

    def __init__(self, project: Project, sandboxes: HostPool, on_wait: Callable[[], None]) -> None:
        """`on_wait` is called when `waiting` has grown."""
        self._project, self._sandboxes, self._on_wait = project, sandboxes, on_wait
        self._lock = asyncio.Lock()  # held while the sandbox, or which host there is, changes
        self._lease = AsyncExitStack()
        self._warm: WarmSandbox[Sandbox, Host] | None = None
        self._prepared_for: tuple[Host, TestPlan, object] | None = None
        self._looked = 0.0  # time.monotonic()
        self._epoch = 0  # how often the sandbox was brought up to date
        self._first_look = False  # of a request: what has changed before it is always followed
        self._restarts: Counter[bool] = Counter()  # in this request, by whether a Python file has changed
        self._unfollowed: set[str] = set()  # what has changed since the sandbox was brought up to date
        self._remarks: list[Notice] = []  # on these

    async def test(self, mutant: Mutant, plan: TestPlan, batch: int) -> Result | None:
        """The verdict; None when the file has changed since it was discovered.

        `batch` numbers the request. Raises ProcessEnded when the host ends, ToolError when the tests say nothing.
        """
        looked = False
        while True:
            if self._is_touched(mutant.path):  # perhaps during a preparation, or while others were tested
                self._looked = 0.0
            host, epoch = await self.prepared(plan), self._epoch
            with suppress(Interrupted):
                result = await host.test(mutant, batch)
                if epoch != self._epoch:
                    continue  # the sandbox changed meanwhile
                if mutant.path in self._unfollowed:
                    return None
                if result is not None or looked:
                    return result
                looked = True
                self._looked = 0.0

    async def settled(self, plan: TestPlan) -> Host:
        """A host that has the files as they are, and has measured all tests. Raises ToolError.

        One that has ended is replaced. Raises ProcessEnded where the next one ends, too.
        """
        have_ended = 0
        while True:
            host = await self.prepared(plan)
            try:
                await host.settle()
            except ProcessEnded:
                have_ended += 1
                if have_ended > 1:
                    raise
                continue
            if host.is_prepared:
                return host

    async def finish_measuring(self, plan: TestPlan) -> None:
        """Wait until the present host, if any, has measured all tests. Raises ToolError where that fails."""
        host = self.host
        if host is not None:
            with suppress(ProcessEnded):  # the next request starts another
                if host.is_measuring:
                    await host.settle()
                if not host.is_prepared:  # its measurement said nothing
                    await self.settled(plan)

    async def reach(
        self, mutants: Sequence[Mutant], plan: TestPlan, known: AskRanAlone, *, alone: bool
    ) -> Mapping[Mutant, Reach]:
        """Implement `KnowsReach`."""
        while True:
            host, epoch = await self.prepared(plan), self._epoch
            ran_alone = await known()
            if epoch != self._epoch:
                continue  # what is known is about other files than the host's
            with suppress(Interrupted):
                found = await host.reach(mutants, ran_alone, alone=alone)
                if epoch == self._epoch:
                    return found

    @property
    def host(self) -> Host | None:
        """The present one, if any."""
        return None if self._warm is None else self._warm.process.current

    @property
    def waiting(self) -> int:
        """How many mutants need no job: they wait until all tests are measured."""
        return 0 if self.host is None else min(len(self.host.waiting), MOST_WAITING)

    @property
    def notices(self) -> Collection[Notice]:
        """The present host's, if any, for each request, and what was not followed in this one."""
        return [*(() if self.host is None else self.host.notices), *self._remarks]

    def _is_touched(self, path: str) -> bool:
        if self._warm is None or path in self._unfollowed:
            return False
        return self._warm.sandbox.is_touched(path)

    def begin_request(self) -> None:
        """Compare the sandbox with the user's tree before the next mutant, and follow what has changed."""
        self._looked, self._first_look = 0.0, True
        self._restarts.clear()
        self._unfollowed.clear()
        self._remarks.clear()

    async def prepares_in_vain(self) -> bool:
        """Whether all tests are being run without a mutant, for files that have changed since."""
        if self._warm is None or self.host is None or not self.host.restarts:
            return False
        return bool(await in_thread(self._warm.sandbox.changed))

    async def prepared(self, plan: TestPlan) -> Host:
        """A host that has the files as they are. Raises ToolError."""
        async with self._lock:
            if self._warm is None:
                self._warm = await self._lease.enter_async_context(self._sandboxes.lease())
            host = self._warm.process.current
            if host is not None and host.is_prepared:
                same = self._prepared_for == (host, plan, identity(self._project.root))
                if same and await self._is_up_to_date(host, self._warm.sandbox):
                    return host
                await host.interrupt()  # before a file moves under the feet of a test
            try:
                return await self._prepare(self._warm, plan)
            except ToolError as error:
                damaged = is_damaged_bytecode(str(error))
                if not damaged and not isinstance(error, ProcessEnded):
                    raise
                if damaged:
                    await in_thread(forget_bytecode, self._project.cache / "bytecode")
                log.warning("trying once more: %s", error)
            try:
                return await self._prepare(self._warm, plan)
            except ProcessEnded as error:  # twice, and before any mutant was tested: no mutant is to blame
                raise ToolError(error.problem, error.remedy) from error

    async def _is_up_to_date(self, host: Host, sandbox: Sandbox) -> bool:
        """Whether the host has the files as they are, or as they were when they were last followed."""
        if time.monotonic() - self._looked < LOOK_AGAIN_S:
            return True
        if self._first_look and await in_thread(host.is_outdated):
            host.is_prepared = False
        changed = await in_thread(sandbox.changed, frozenset(self._unfollowed))
        if self._follow(changed) or not host.is_prepared:
            return False
        self._looked = time.monotonic()
        return True

    def _follow(self, changed: Collection[str]) -> bool:
        """Whether the sandbox is to be brought up to date, because these paths have changed since."""
        first, self._first_look = self._first_look, False
        if first or not changed:
            return bool(changed)
        python = any(path.endswith(".py") for path in changed)
        self._restarts[python] += 1
        if self._restarts[python] <= (RESTARTS if python else 1):
            return True
        if not self._unfollowed:
            what = "changed again while mutants are tested: that counts from the next request on"
            self._remarks = [Remark(f"{enumerated(sorted(changed), SHOWN_FILES)} {what}")]
        self._unfollowed.update(changed)
        return False

    async def _prepare(self, warm: WarmSandbox[Sandbox, Host], plan: TestPlan) -> Host:
        looked = time.monotonic()
        self._first_look = False
        self._epoch += 1
        before, self._prepared_for = self._prepared_for, None
        try:
            changed = await warm.refresh()
            self._unfollowed.clear()
            await in_thread(_put_up, warm.sandbox.path.parent / "pytest.ini")
            # The sandbox is mounted over the project's own directory, and moves away with it.
            root = identity(self._project.root)
            host = await warm.process.get(lambda: self._start(warm.sandbox, plan), (plan.python, root))
            if before != (host, plan, root) or changed or not host.is_prepared:
                await host.prepare(plan, changed, warm.sandbox, self._project.root)
        except BaseException as error:  # cancelled, perhaps in the middle of a run of the whole suite
            await warm.process.close()
            gone = not self._project.root.is_dir()
            if isinstance(error, ToolError) and gone:  # whatever its message, this is why
                raise ToolError(f"{self._project.root} is gone", "open the project where it is now") from error
            raise
        self._prepared_for, self._looked = (host, plan, root), looked
        return host

    async def _start(self, sandbox: Sandbox, plan: TestPlan) -> Host:
        options = {
            "root": os.path.realpath(self._project.root),
            "jobs": max(1, self._project.jobs),
            "isolation": wanted_isolation(os.environ),
        }
        env = python_environment(plan.python, self._project.cache)
        return await Host.start(plan.python, options, sandbox=sandbox.path, env=env, on_wait=self._on_wait)

    async def aclose(self) -> None:
        """End the host and give the sandbox back."""
        async with self._lock:
            if self._warm is not None:
                await self._warm.process.close()
            self._warm = None
            await self._lease.aclose()


def _put_up(barrier: Path) -> None:
    with writes_in(barrier.parent):
        if barrier.is_dir():
            shutil.rmtree(barrier)
        if not barrier.is_file() or barrier.read_bytes() != BARRIER:
            barrier.write_bytes(BARRIER)
