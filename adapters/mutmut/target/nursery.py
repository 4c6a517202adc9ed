"""Nursery: the zygotes that there are at a time, and the only place that starts and ends them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from . import descendants
from .channel import Channel, Message
from .fault import Unprepared, fault_of, last_error
from .workers import Pool

FAILED: Message = {"do": "failed", "exit": "?", "broken": []}


class Nursery:
    """A warm zygote, if its workers can be trusted, and a cold one."""

    def __init__(self, root: str, home: Path, private: Iterable[int]) -> None:
        """`private` are descriptors that only the host may hold."""
        self._root, self._home, self._private = root, home, list(private)
        self.warm: Pool | None = None
        self.cold: Pool | None = None

    @property
    def pools(self) -> list[Pool]:
        """Those that there are."""
        return [pool for pool in (self.warm, self.cold) if pool is not None]

    def start(self, always_cold: bool) -> Message | None:
        """Both; what collecting the tests has shown, None with `always_cold`. Raises Unprepared."""
        self.cold = self._start("cold")
        collected = None if always_cold else self._collect()
        self._check_cold()
        return collected

    def end(self) -> None:
        """End them, their workers, and what those have left."""
        for pool in self.pools:
            pool.end()
        self.warm = self.cold = None
        descendants.end_strays(())

    def log(self, kind: str) -> str:
        """The end of what pytest has printed."""
        return (self._home / f"{kind}.log").read_text(encoding="utf-8", errors="replace").strip()[-1500:]

    def _start(self, kind: str) -> Pool:
        private = [*self._private, *(pool.channel.reader for pool in self.pools)]
        return Pool(lambda channel: _serve(kind, channel, self._root), f"{self._home}/{kind}.log", private)

    def _collect(self) -> Message:
        self.warm = self._start("warm")
        answer = next(self.warm.channel.messages(), None)
        if answer is None:
            log = self.log("warm")
            raise Unprepared(f"pytest crashed while it collected the tests: {last_error(log)}", log)
        if answer["do"] == "failed":
            raise fault_of(answer, self.log("warm"))
        if answer["threads"]:  # a fork has none of the threads that the modules have started
            self.warm.end()
            self.warm = None
        return answer

    def _check_cold(self) -> None:
        """Wait until the cold zygote is ready, or the other kind, if the project's own code comes with pytest."""
        assert self.cold is not None
        answer = next(self.cold.channel.messages(), FAILED)
        if answer["do"] == "unfit":
            self.cold.end()
            self.cold = None
            self.cold = self._start("fresh")
            answer = next(self.cold.channel.messages(), FAILED)
        if answer["do"] != "ready":
            raise fault_of(answer, self.log("cold"))


def _serve(kind: str, channel: Channel, root: str) -> None:
    from . import zygote  # here, and not above: it imports pytest, which the host must not

    getattr(zygote, kind)(channel, root)
