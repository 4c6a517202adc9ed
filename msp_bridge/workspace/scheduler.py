"""Which request goes on, and how many mutants each tool may test at once.

Theory of operation
-------------------
The problem. Several requests run at once: the editor's user changes a function and wants its mutants, while a run over
the whole project is half done. The newest request matters most. But a request can also wait for its own client, which
may have stopped reading; such a request must not hold up the others. And tools that work side by side must share one
bound on the mutants that are tested at once, or the machine is overloaded and mutants time out.

The obvious ways fail. A queue with one request at a time makes the newest one wait for the oldest. Cancelling the older
ones loses work that a user still wants. Limiting processes below the adapters can't work, because some tools start
their own.

`RequestScheduler` uses back-pressure instead. An adapter starts the next mutant only while its next result is awaited
(`Adapter`, "Back-pressure"). So the front end pauses a request by not asking for its next result. Each request has a
`Turn`, in one of two states:

- *wants to go on*: it awaits a result from a tool, or is about to;
- *paused*: its client takes a result that it was given. It wants nothing from a tool.

Invariants:

1. Exactly the newest turn that wants to go on may go on; the others wait before they ask for a result.
2. A turn that is alone may always go on. This is the usual case, and it is decided with each result: it must be cheap.
3. Nothing is taken back: a result that an older request already awaits arrives, and its mutants that have been started
   finish. Only what would be started next waits.
4. A pause that ends at once lets nobody through: `wait` looks again after it wakes.

`JobBudget` divides `total` among the tools that are active, in equal shares; a tool that is alone has all of it, and
each has one at least. A tool whose request waits for a newer one is paused: its share goes to the others.
`Project.jobs` reads the share whenever an adapter is about to start mutants, so no message is needed when it changes.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator


class Turn:
    """One request's place. It may go on while no newer one wants to."""

    def __init__(self, update: Callable[[], None]) -> None:
        self.may_go_on = asyncio.Event()
        self.wants_to = True
        self._update = update

    async def wait(self) -> None:
        """Wait until no newer request wants to go on."""
        while not self.may_go_on.is_set():
            await self.may_go_on.wait()  # it may be cleared again before we wake: hence the loop

    def paused(self) -> Pause:
        """A block in which nobody takes its results, as when its client has stopped reading."""
        return Pause(self)

    def want(self, to_go_on: bool) -> None:
        """Set whether it wants to go on."""
        self.wants_to = to_go_on
        self._update()


class Pause:
    """A block in which a turn doesn't want to go on. A class: there is one for each result, and it costs a third."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn

    def __enter__(self) -> None:
        self._turn.want(False)

    def __exit__(self, *_: object) -> None:
        self._turn.want(True)


class RequestScheduler:
    """Newest request first, by back-pressure (see the module)."""

    def __init__(self) -> None:
        self._turns: list[Turn] = []  # the oldest first

    @contextlib.contextmanager
    def turn(self) -> Iterator[Turn]:
        """A turn that goes before all the present ones."""
        turn = Turn(self._update)
        self._turns.append(turn)
        self._update()
        try:
            yield turn
        finally:
            self._turns.remove(turn)
            self._update()

    def _update(self) -> None:
        if len(self._turns) == 1:
            self._turns[0].may_go_on.set()
            return
        newest = next((turn for turn in reversed(self._turns) if turn.wants_to), None)
        for turn in self._turns:
            if turn is newest:
                turn.may_go_on.set()
            else:
                turn.may_go_on.clear()


class JobBudget:
    """How many mutants may be tested at once: `total`, divided among the tools that are active (see the module)."""

    def __init__(self, total: int) -> None:
        self.total = total
        self._active: list[str] = []  # one entry for each request that a tool works on, oldest first

    @contextlib.contextmanager
    def active(self, tool: str) -> Iterator[None]:
        """A block in which `tool` works on a request."""
        self._active.append(tool)
        try:
            yield
        finally:
            self._active.remove(tool)

    @contextlib.contextmanager
    def paused(self, tool: str) -> Iterator[None]:
        """A block, within one in which it is active, in which `tool` waits."""
        self._active.remove(tool)
        try:
            yield
        finally:
            self._active.append(tool)

    def share_of(self, tool: str) -> int:
        """How many mutants `tool` may test at once, now."""
        working = list(dict.fromkeys([*self._active, tool]))
        share, left = divmod(self.total, len(working))
        return max(1, share + (working.index(tool) < left))
