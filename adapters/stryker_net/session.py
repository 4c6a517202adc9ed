"""Session: the mutants of one run, and what its page, its stream and its report tell of them: each once."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import AsyncGenerator

from attrs import define, field

from msp_bridge.adapter import Mutant, Result, Status

from .assumptions import FILE_FILTERED
from .live import live
from .report import Report, is_pending
from .run import Run

log = logging.getLogger(__name__)


@define(eq=False)
class Session:
    """`base` is the directory in which the run takes place, `due` the mutants without a result."""

    base: str
    due: dict[Mutant, None]
    _told: dict[Mutant, Result] = field(factory=dict, init=False)
    _others: set[str] = field(factory=set, init=False)  # ids of mutants that are tested, too, and aren't selected

    @property
    def only_others_left(self) -> bool:
        """Whether all that the run would still find out is what nobody asked for."""
        return not self.due and bool(self._others)

    async def live(self, run: Run) -> AsyncGenerator[Result, None]:
        """What the page and the stream tell, as they do. Ends with them, or when only others are left."""
        by_id: dict[str, Mutant] = {}
        report: Report | None = None
        async with contextlib.aclosing(live(run)) as events:
            async for event in events:
                if isinstance(event, Report):
                    report = event
                    for mutant, entry in await report.mutants(self.base):
                        if is_pending(entry):
                            self._expect(mutant, str(entry.get("id")), by_id)
                        elif mutant in self.due:  # it needs no test
                            yield self._tell(report.result(mutant, entry))
                elif report is not None:
                    self._others.discard(str(event["id"]))
                    tested = by_id.get(str(event["id"]))
                    if tested is not None and tested in self.due:
                        yield self._tell(report.result(tested, event))
                if self.only_others_left:
                    return

    async def final(self, report: Report) -> AsyncGenerator[Result, None]:
        """What the report tells of those that are still due; the log has it if the stream told something else."""
        for mutant, entry in await report.mutants(self.base):
            if mutant in self.due:
                yield self._tell(report.result(mutant, entry))
            elif mutant in self._told:
                self._confirm(report.result(mutant, entry))
        for path in report.filtered():
            for mutant in [mutant for mutant in self.due if mutant.path == path]:
                yield self._tell(Result(mutant, Status.IGNORED, status_reason=FILE_FILTERED))

    def _expect(self, mutant: Mutant, number: str, by_id: dict[str, Mutant]) -> None:
        by_id[number] = mutant
        if mutant not in self.due:
            self._others.add(number)

    def _confirm(self, final: Result) -> None:
        told = self._told[final.mutant]
        if told.status is not final.status:
            where = f"{final.mutant.path}:{final.mutant.location.start.line} ({final.mutant.mutator})"
            log.warning("the stream said %s of %s, the report says %s", told.status.value, where, final.status.value)

    def _tell(self, result: Result) -> Result:
        del self.due[result.mutant]
        self._told[result.mutant] = result
        return result
