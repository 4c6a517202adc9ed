"""Chunks: which mutants a worker gets next. Pure; the simulation in `benchmarks/cluster.py` uses it, too.

A chunk follows the files: a worker goes on with the file that it is at, then takes the file with the most mutants that
no other worker is at. So a file is discovered, and its mutated code prepared, on few workers. Chunks shrink: each is a
part of what is left for all (guided self-scheduling), down to one mutant, so that all workers end at about one time.
What was lost with a worker is given out again, one mutant at a time, because one of them may be what ends workers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from attrs import define, field

from msp_bridge.model import Mutant

LARGEST = 32  # mutants: a chunk that is lost is tested again, and a cancel waits for few
SHARE = 3  # chunks that each worker gets of what is left, if all go on as now
LOSSES = 3  # chunks of this mutant that workers were lost with; then it isn't given out again


@define(eq=False)
class Chunks:
    """The mutants of one request that no worker has, by file; in the order in which they came."""

    _pending: dict[str, dict[Mutant, None]] = field(factory=dict)
    _at: dict[str, str] = field(factory=dict)  # worker to file
    _losses: Counter[Mutant] = field(factory=Counter)

    @classmethod
    def of(cls, mutants: Iterable[Mutant]) -> Chunks:
        """Make the chunks of all mutants of a request."""
        chunks = cls()
        for mutant in mutants:
            chunks._add(mutant)
        return chunks

    @property
    def left(self) -> int:
        """Mutants that no worker has."""
        return sum(map(len, self._pending.values()))

    def take(self, worker: str, workers: int) -> list[Mutant]:
        """The next chunk for `worker`, one of `workers`; empty when nothing is left."""
        size = max(1, min(LARGEST, self.left // (SHARE * max(workers, 1))))
        chunk: list[Mutant] = []
        while len(chunk) < size and self._pending:
            path = self._next_file(worker)
            self._at[worker] = path
            file = self._pending[path]
            lost_before = [mutant for mutant in file if self._losses[mutant]]
            if lost_before and chunk:
                break
            found = lost_before[:1] or [*file][: size - len(chunk)]
            for mutant in found:
                del file[mutant]
            if not file:
                del self._pending[path]
            chunk += found
            if lost_before:
                break
        return chunk

    def were_lost(self, mutants: Iterable[Mutant]) -> bool:
        """Whether a worker was lost with one of them."""
        return any(self._losses[mutant] for mutant in mutants)

    def put_back(self, mutants: Iterable[Mutant]) -> None:
        """Take back the mutants that a worker did not begin."""
        for mutant in mutants:
            self._add(mutant)

    def lost(self, mutants: Sequence[Mutant]) -> list[Mutant]:
        """Take back the mutants of a lost worker. Returns the ones that are not given out again."""
        given_up = []
        for mutant in mutants:
            self._losses[mutant] += 1
            if self._losses[mutant] >= LOSSES:
                given_up.append(mutant)
            else:
                self._add(mutant)
        return given_up

    def leave(self, worker: str) -> None:
        """The worker gets no more."""
        self._at.pop(worker, None)

    def _add(self, mutant: Mutant) -> None:
        self._pending.setdefault(mutant.path, {})[mutant] = None

    def _next_file(self, worker: str) -> str:
        current = self._at.get(worker)
        if current in self._pending:
            return current
        elsewhere = {path for other, path in self._at.items() if other != worker}
        return max(self._pending, key=lambda path: (path not in elsewhere, len(self._pending[path])))
