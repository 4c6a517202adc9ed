"""Precedence: the newest request goes first, the older ones wait until it is done."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator


class Turn:
    """One request's place. It may go on while it is the newest."""

    def __init__(self) -> None:
        self.may_go_on = asyncio.Event()

    async def wait(self) -> None:
        """Until no newer request is running."""
        await self.may_go_on.wait()


class Precedence:
    """Newest first, by back-pressure: an older request isn't asked for its next result: its adapter starts no more."""

    def __init__(self) -> None:
        self._turns: list[Turn] = []

    @contextlib.contextmanager
    def turn(self) -> Iterator[Turn]:
        """A turn that goes before all the present ones."""
        turn = Turn()
        self._turns.append(turn)
        self._settle()
        try:
            yield turn
        finally:
            self._turns.remove(turn)
            self._settle()

    def _settle(self) -> None:
        for turn in self._turns:
            if turn is self._turns[-1]:
                turn.may_go_on.set()
            else:
                turn.may_go_on.clear()
