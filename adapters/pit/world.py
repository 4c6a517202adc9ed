"""World: what a JVM that runs tests can reach, which goes with it.

Where Linux permits namespaces each tester (`testers`) runs in a world of its own, and the host (`host`) in one with the
JVMs that it starts. What they write into the copy of the project, the user's tree, the home directory or among
temporary files is dropped when they end, and their processes end with them. They have the machine's network.

Which parts are on: the most that the tests without a mutant pass in. Where what they cover is known they are not run,
so it is kept for these parts alone. With `skipFailingTests` nothing shows that a test fails inside: all run outside.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from attrs import define, field

from msp_bridge.concurrency import in_thread
from msp_bridge.toolkit import Around, Isolation


@define
class World:
    """The worlds for one copy of the project."""

    copy: Path
    project: Path  # the user's tree
    is_real: bool = False  # nothing is isolated
    _isolation: Isolation = field(init=False)
    _deciding: asyncio.Lock = field(factory=asyncio.Lock, init=False)

    def __attrs_post_init__(self) -> None:
        self._isolation = Isolation.of("PIT's tests", self.copy, network=True, home=True)
        if self.is_real:
            self._isolation = Isolation("PIT's tests", self._isolation.root, ())

    async def command(
        self, argv: Sequence[str], home: Path, share: Sequence[Path] = ()
    ) -> tuple[Sequence[str], frozenset[str]]:
        """Return the arguments that run `argv` in a new world, as far as there can be one, and the parts of that.

        `home` is private; `share`: directories that stay the real ones.
        """
        parts = await self.parts()
        if not parts:
            return argv, parts
        around = Around([], outside=[] if self.copy.is_relative_to(self.project) else [self.project])
        isolation = self._isolation
        return await in_thread(isolation.command, isolation.root, argv, share, home, around), parts

    async def parts(self) -> frozenset[str]:
        """The parts that are wanted now."""
        await self._isolation.probe()
        return self._isolation.wanted

    async def decide(self, passes: Callable[[], Awaitable[bool]]) -> bool:
        """Find the most parts with which the tests without a mutant pass, one module at a time."""
        async with self._deciding:
            return await self._isolation.decide(passes)

    def wants(self, parts: frozenset[str]) -> bool:
        """Whether the next world is to have these parts."""
        return self._isolation.wanted == parts

    async def described(self) -> str:
        """Describe what is isolated."""
        await self._isolation.probe()
        return self._isolation.description
