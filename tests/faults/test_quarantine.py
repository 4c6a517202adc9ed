"""Quarantine: suspects are alone, nobody waits for ever, and a cancel frees the place."""

from __future__ import annotations

import asyncio
import contextlib

from msp_bridge.python_engine.turns import Quarantine

STEPS = 20  # of the event loop, in which whoever may go on does


async def settled() -> None:
    for _ in range(STEPS):
        await asyncio.sleep(0)


class Ward:
    """A quarantine, and who is in it."""

    def __init__(self) -> None:
        self.quarantine = Quarantine()
        self.inside: set[str] = set()
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def enter(self, name: str, *, suspect: bool = False) -> None:
        self._tasks[name] = asyncio.create_task(self._stay(name, suspect))
        await settled()

    async def leave(self, name: str) -> None:
        task = self._tasks.pop(name)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        await settled()

    async def _stay(self, name: str, suspect: bool) -> None:
        async with self.quarantine.place(suspect=suspect):
            self.inside.add(name)
            try:
                await asyncio.Event().wait()
            finally:
                self.inside.discard(name)


async def test_suspects_are_alone_and_go_first() -> None:
    ward = Ward()
    await ward.enter("a")
    await ward.enter("b")
    assert ward.inside == {"a", "b"}
    await ward.enter("one", suspect=True)
    await ward.enter("other", suspect=True)
    await ward.enter("newcomer")
    assert ward.inside == {"a", "b"}
    await ward.leave("a")
    assert ward.inside == {"b"}
    await ward.leave("b")
    assert ward.inside in ({"one"}, {"other"})
    for _ in range(2):
        (suspect,) = ward.inside
        assert suspect in ("one", "other")
        await ward.leave(suspect)
    assert ward.inside == {"newcomer"}
    await ward.leave("newcomer")


async def test_a_suspect_that_is_cancelled_while_it_waits_holds_up_nobody() -> None:
    ward = Ward()
    await ward.enter("a")
    await ward.enter("suspect", suspect=True)
    await ward.enter("b")
    assert ward.inside == {"a"}
    await ward.leave("suspect")
    assert ward.inside == {"a", "b"}
    await ward.leave("a")
    await ward.leave("b")
    await ward.enter("suspect", suspect=True)
    assert ward.inside == {"suspect"}
    await ward.leave("suspect")
