"""Testing: mutants in, results out, over runs of Stryker.NET that may have to make way for newer requests."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
from collections.abc import AsyncGenerator, Sequence
from functools import partial

from msp_bridge.adapter import Mutant, Project, Result, ToolError

from . import patterns, served
from .assumptions import CAN_STREAM
from .base import Base
from .bench import Bench
from .copy import PrivateCopy
from .discovery import Found
from .plan import Plan
from .run import Run
from .session import Session
from .warm import Warm

log = logging.getLogger(__name__)


class Testing:
    """Owns the copy that tests run in."""

    __test__ = False  # pytest would take it for a test

    def __init__(self, project: Project) -> None:
        self._bench = Bench(project)
        self._warm = Warm()
        self._orders = itertools.count()

    async def test(self, plan: Plan, found: Found, mutants: Sequence[Mutant]) -> AsyncGenerator[Result, None]:
        """See `Adapter.test`. `found` is every mutant that there is now."""
        order = next(self._orders)
        present = {mutant: mutant for path in {m.path for m in mutants} for mutant in found.files.get(path, ())}
        existing = [present[mutant] for mutant in dict.fromkeys(mutants) if mutant in present]
        for base in plan.bases:
            due = dict.fromkeys(mutant for mutant in existing if patterns.base_of(mutant) == base.directory)
            finished = False
            while due and not finished:
                work = partial(self._ask if found.served else self._run, plan, found, base, tuple(due))
                async with self._bench.visit(order, work) as visit:
                    async with contextlib.aclosing(visit.results()) as results:
                        async for result in results:
                            del due[result.mutant]
                            yield result
                    finished = visit.finished

    async def aclose(self) -> None:
        """End the server, and let others have the copy."""
        await self._warm.aclose()
        await self._bench.aclose()

    async def _ask(
        self, plan: Plan, found: Found, base: Base, due: Sequence[Mutant], copy: PrivateCopy
    ) -> AsyncGenerator[Result, None]:
        """`_run`, by the tool's own server."""
        await asyncio.to_thread(copy.prepare)
        wanted = served.Wanted.of(due, base.directory)
        async with self._warm.server(copy, base.directory, plan.server(base, copy)) as server:
            async with contextlib.aclosing(server.test(wanted.request)) as entries:
                async for entry in entries:
                    result = wanted.result(entry)
                    if result is not None:
                        yield result
            if wanted.none_told and copy.content == found.content:
                raise server.failed("it answered without a single result")
        for mutant in wanted.left:
            log.warning("Stryker.NET told nothing of %s:%s", mutant.path, mutant.location.start.line)

    async def _run(
        self, plan: Plan, found: Found, base: Base, due: Sequence[Mutant], copy: PrivateCopy
    ) -> AsyncGenerator[Result, None]:
        """Each of `due` once, unless it is no longer there."""
        await asyncio.to_thread(copy.prepare)
        output = await asyncio.to_thread(copy.output)
        known = {mutant.path: len(found.files[mutant.path]) for mutant in due}
        chosen = patterns.testing(due, known, copy.path, plan.configuration(base))
        command = plan.command(base, copy, output, chosen, live=CAN_STREAM)
        session = Session(base.directory, dict.fromkeys(due))
        async with Run.of(command, copy, base.directory, output) as run:
            if CAN_STREAM:
                async with contextlib.aclosing(session.live(run)) as results:
                    async for result in results:
                        yield result
            if session.only_others_left:
                return
            try:
                report = await run.report()
            except ToolError as error:
                if session.due:
                    raise
                log.warning("every result is known, but nothing confirms them: %s", error)
                return
        async with contextlib.aclosing(session.final(report)) as results:
            async for result in results:
                yield result
