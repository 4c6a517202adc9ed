"""A turn that is shared, or taken alone: nobody waits for ever, and a cancel gives it back."""

from __future__ import annotations

import asyncio
import contextlib

from msp_bridge.python_engine.turns import SharedTurn

STEPS = 20  # of the event loop, in which whoever may go on does


async def settled() -> None:
    for _ in range(STEPS):
        await asyncio.sleep(0)


class Takers:
    """A turn, and who has it."""

    def __init__(self) -> None:
        self.turn = SharedTurn()
        self.inside: set[str] = set()
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def enter(self, name: str, *, alone: bool = False) -> None:
        self._tasks[name] = asyncio.create_task(self._stay(name, alone))
        await settled()

    async def leave(self, name: str) -> None:
        task = self._tasks.pop(name)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        await settled()

    async def _stay(self, name: str, alone: bool) -> None:
        async with self.turn.take(alone=alone):
            self.inside.add(name)
            try:
                await asyncio.Event().wait()
            finally:
                self.inside.discard(name)


async def test_those_that_take_it_alone_go_first() -> None:
    takers = Takers()
    await takers.enter("a")
    await takers.enter("b")
    assert takers.inside == {"a", "b"}
    await takers.enter("one", alone=True)
    await takers.enter("other", alone=True)
    await takers.enter("newcomer")
    assert takers.inside == {"a", "b"}
    await takers.leave("a")
    assert takers.inside == {"b"}
    await takers.leave("b")
    assert takers.inside in ({"one"}, {"other"})
    for _ in range(2):
        (name,) = takers.inside
        assert name in ("one", "other")
        await takers.leave(name)
    assert takers.inside == {"newcomer"}
    await takers.leave("newcomer")


async def test_one_that_is_cancelled_while_it_waits_to_be_alone_holds_up_nobody() -> None:
    takers = Takers()
    await takers.enter("a")
    await takers.enter("alone", alone=True)
    await takers.enter("b")
    assert takers.inside == {"a"}
    await takers.leave("alone")
    assert takers.inside == {"a", "b"}
    await takers.leave("a")
    await takers.leave("b")
    await takers.enter("alone", alone=True)
    assert takers.inside == {"alone"}
    await takers.leave("alone")
