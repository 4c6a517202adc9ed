"""Shares: one bound on how many mutants are tested at once, divided among the tools that are at work."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator


class Shares:
    """`total` is the bound. Each tool that is at work gets an equal share, at least one; one that is alone gets all."""

    def __init__(self, total: int) -> None:
        self.total = total
        self._parties: list[str] = []  # one entry for each request that a tool works on, oldest first

    @contextlib.contextmanager
    def party(self, tool: str) -> Iterator[None]:
        """A block in which `tool` is at work."""
        self._parties.append(tool)
        try:
            yield
        finally:
            self._parties.remove(tool)

    @contextlib.contextmanager
    def without(self, tool: str) -> Iterator[None]:
        """A block, within that of its party, in which `tool` waits."""
        self._parties.remove(tool)
        try:
            yield
        finally:
            self._parties.append(tool)

    def of(self, tool: str) -> int:
        """How many mutants `tool` may test at once, now."""
        working = list(dict.fromkeys([*self._parties, tool]))
        share, left = divmod(self.total, len(working))
        return max(1, share + (working.index(tool) < left))
