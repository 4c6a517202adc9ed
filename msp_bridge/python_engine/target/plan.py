"""What the bridge asks of the engine: where the project is, how its tests are started, and their limits."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Plan:
    """For one version of the project. `sources` are the files that may be mutated, relative to the root, with `/`."""

    place: str  # the directory in which the tests run
    arguments: tuple[str, ...]  # of pytest
    sources: tuple[str, ...]
    limit: tuple[float, float]  # s, factor: a run of tests that take t seconds may take (t + s) * factor
    content: str  # names the content of the project
    environment: str  # names all else that a measurement depends on
    always_fresh: bool = False
    debug: bool = False
    exit_kills: bool = False  # a mutant that ends the process of the tests, but not with 0, is Killed

    @classmethod
    def of(cls, message: dict[str, Any], place: str) -> Plan:
        """From the bridge's message."""
        return cls(
            place,
            tuple(message["arguments"]),
            tuple(message["sources"]),
            (message["limit"][0], message["limit"][1]),
            message["content"],
            message["environment"],
            message["always_fresh"],
            message["debug"],
            message["exit_kills"],
        )

    @property
    def filenames(self) -> list[str]:
        """The sources as their modules have them in `__file__`."""
        return [os.path.join(self.place, path) for path in self.sources]

    def limit_for(self, seconds: float) -> float:
        """How long tests that take `seconds` without a mutant may take, in seconds."""
        return (seconds + self.limit[0]) * self.limit[1]
