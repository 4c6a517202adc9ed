"""Precedence: the newest request goes first, the older ones wait until it is done, or waits for its client itself."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator


class Turn:
    """One request's place. It may go on while no newer one wants to."""

    def __init__(self, settle: Callable[[], None]) -> None:
        self.may_go_on = asyncio.Event()
        self.wants_to = True
        self._settle = settle

    async def wait(self) -> None:
        """Until no newer request wants to go on."""
        while not self.may_go_on.is_set():
            await self.may_go_on.wait()  # it may be cleared again before we wake: hence the loop

    def rest(self) -> Rest:
        """While nobody takes its results, as when its client has stopped reading: it must not hold up the others."""
        return Rest(self)

    def want(self, to_go_on: bool) -> None:
        """Say whether it wants to go on."""
        self.wants_to = to_go_on
        self._settle()


class Rest:
    """A block in which a turn doesn't want to go on. A class, for there is one for each result: it costs a third."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn

    def __enter__(self) -> None:
        self._turn.want(False)

    def __exit__(self, *_: object) -> None:
        self._turn.want(True)


class Precedence:
    """Newest first, by back-pressure: an older request isn't asked for its next result: its adapter starts no more."""

    def __init__(self) -> None:
        self._turns: list[Turn] = []

    @contextlib.contextmanager
    def turn(self) -> Iterator[Turn]:
        """A turn that goes before all the present ones."""
        turn = Turn(self._settle)
        self._turns.append(turn)
        self._settle()
        try:
            yield turn
        finally:
            self._turns.remove(turn)
            self._settle()

    def _settle(self) -> None:
        if len(self._turns) == 1:  # nobody to let by: the usual case, and it comes with each result
            self._turns[0].may_go_on.set()
            return
        newest = next((turn for turn in reversed(self._turns) if turn.wants_to), None)
        for turn in self._turns:
            if turn is newest:
                turn.may_go_on.set()
            else:
                turn.may_go_on.clear()
