"""Figures: what an idle server and all its tools hold: processes, descriptors, memory."""

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Self

import psutil
from attrs import frozen

LOOKS = 200  # 20 ms apart, until a tool that was asked to end is gone
MEGABYTE = 1_000_000
ROOM = 1.25  # times what was held after the warm-up: allocators keep what they once had


@frozen
class Figures:
    """Of a server's process and everything below it."""

    processes: int
    descriptors: int
    megabytes: float  # resident; of all together, so shared pages count for each
    server_megabytes: float

    @classmethod
    def look(cls, pid: int) -> Self:
        """As it is now."""
        server = psutil.Process(pid)
        everybody = [server, *server.children(recursive=True)]
        descriptors = resident = 0
        for process in list(everybody):
            try:
                descriptors += process.num_fds()
                resident += process.memory_info().rss
            except psutil.NoSuchProcess:
                everybody.remove(process)
        own = server.memory_info().rss
        return cls(len(everybody), descriptors, round(resident / MEGABYTE, 1), round(own / MEGABYTE, 1))

    @classmethod
    async def settled(cls, pid: int, expected: Self | None) -> Self:
        """As it is when nothing ends any more; sooner when it is what is `expected`."""
        before = None
        for _ in range(LOOKS):
            with contextlib.suppress(psutil.NoSuchProcess):
                now = cls.look(pid)
                if expected is not None and now.counts == expected.counts:
                    return now
                if expected is None and before is not None and now.counts == before.counts:
                    return now
                before = now
            await asyncio.sleep(0.02)
        assert before is not None
        return before

    @property
    def counts(self) -> tuple[int, int]:
        """What must be the same each time."""
        return self.processes, self.descriptors


def check_flat(figures: Sequence[Figures]) -> None:
    """The same processes and descriptors each time, and no more memory than there was once everything had been used."""
    assert {figure.counts for figure in figures} == {figures[0].counts}, figures
    warm = figures[: max(1, len(figures) // 4)]
    for of in (lambda figure: figure.megabytes, lambda figure: figure.server_megabytes):
        assert max(map(of, figures)) <= ROOM * max(map(of, warm)), figures
