"""ListingProgram: the warm program that lists the mutants of files, and a further one while a file takes it long.

Theory of operation
-------------------
The program answers one question after another, most within milliseconds. A file can take it half a minute (5,000
additions in one line), and other clients must not wait for that. So the caller whose question has taken SLOW_S of CPU
time sets the program aside: it stays for this one answer and is ended then. A request that waits behind it asks again,
as do all later ones, a program that takes its place. There are at most MAX_ASIDE programs aside; beyond that, others
wait. By the clock, each program would be slow on a busy machine, and starting another one would make it busier. The
clock counts only for one that hangs, and takes no CPU time.

A question of which the caller is cancelled ends its program: it would be worked on all the same.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, Mapping
from weakref import WeakSet

from msp_bridge.concurrency import in_thread
from msp_bridge.toolkit.json_lines import Answer, JsonLinesProcess, ProcessEnded
from msp_bridge.toolkit.pool import WarmProcess

log = logging.getLogger(__name__)

FILE_TIMEOUT_S = 30.0  # for the mutants of one file, and
KILOBYTE_TIMEOUT_S = 1.0  # for each 1,000 characters of it; most files take a tenth of that
SLOW_S = 2.0  # of CPU time for one question, before the others get another program
LOOK_S = 0.5  # between two looks at what it has taken
MAX_ASIDE = 4


class ListingProgram:
    """Asks the program that `start` starts in a directory that `identity` identifies."""

    def __init__(self, identity: Callable[[], object], start: Callable[[], Awaitable[JsonLinesProcess]]) -> None:
        self._process: WarmProcess[JsonLinesProcess] = WarmProcess(identity)
        self._start = start
        self._aside: WeakSet[JsonLinesProcess] = WeakSet()

    async def started(self, key: object = None) -> JsonLinesProcess:
        """The program; another one when `key` is another than before. Raises what `start` does."""
        return await self._process.get(self._start, key)

    async def ask(self, question: Mapping[str, object], text: str | None = None, key: object = None) -> Answer:
        """The answer to `question`, which may be about the mutants of a file with the content `text`.

        It is asked once more when the program ends: perhaps somebody has killed it while it had nothing to do. Raises
        ProcessEnded, and TimeoutError when the file takes too long, which says how long that was.
        """
        try:
            return await self._ask(question, text, key)
        except ProcessEnded as error:
            log.warning("trying once more: %s", error)
        return await self._ask(question, text, key)

    async def _ask(self, question: Mapping[str, object], text: str | None, key: object) -> Answer:
        while True:
            process = await self.started(key)
            number, answer = process.post(question)
            before, since = None, math.inf
            try:
                while not (await asyncio.wait([answer], timeout=LOOK_S))[0] and process not in self._aside:
                    taken = await in_thread(process.cpu_seconds)
                    if not process.works_on(number):
                        continue
                    if before is None:
                        before, since = taken, time.monotonic()
                    if taken - before >= SLOW_S or time.monotonic() - since >= FILE_TIMEOUT_S:
                        return await self._alone(process, answer, text)
            except asyncio.CancelledError:
                answer.cancel()
                if text is not None:
                    await process.close()
                raise
            ended = answer.done() and isinstance(answer.exception(), ProcessEnded)
            if answer.done() and not (ended and process in self._aside):
                return answer.result()
            answer.cancel()

    async def aclose(self) -> None:
        """End all programs."""
        await self._process.close()
        for process in tuple(self._aside):
            await process.close()

    async def _alone(self, process: JsonLinesProcess, answer: asyncio.Future[Answer], text: str | None) -> Answer:
        """The answer of `process`, which works on it already and is ended afterwards."""
        if sum(not other.closed for other in self._aside) < MAX_ASIDE:
            self._aside.add(process)
            self._process.let_go(process)
        limit = math.inf if text is None else FILE_TIMEOUT_S + KILOBYTE_TIMEOUT_S * len(text) / 1000
        try:
            done, _ = await asyncio.wait([answer], timeout=None if text is None else limit - SLOW_S)
            if done:
                return answer.result()
            answer.cancel()
            raise TimeoutError(f"it has not found them within {limit:.0f} s; leave the file out, or split it")
        finally:
            await process.close()
