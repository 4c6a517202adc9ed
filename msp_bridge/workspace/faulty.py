"""Faulty: stands where the tools of a folder can't be had, and says why to whoever asks for them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import ClassVar, Self

from attrs import frozen

from msp_bridge.adapter import Finding, Mutant, Project, Result, Scope
from msp_bridge.errors import ConfigurationError


@frozen(eq=False)
class Faulty:
    """An adapter in name only. It claims all that is its folder's, so that nothing falls to a tool around it."""

    name: ClassVar[str] = "msp-bridge"
    markers: ClassVar[tuple[str, ...]] = ()
    sources: ClassVar[tuple[str, ...]] = ()
    reason: str

    @classmethod
    def detect(cls, project: Project) -> Self | None:
        """Never: it is put where another adapter failed."""
        return None

    @classmethod
    def absent(cls, project: Project) -> Finding:
        """Nothing is missing."""
        return Finding(True, cls.name, f"nothing is wrong in {project.root}")

    def claims(self, path: str) -> bool:
        """All of them."""
        return True

    async def discover(self, scope: Scope) -> AsyncGenerator[Mutant, None]:
        """Raises ConfigurationError."""
        raise ConfigurationError(self.reason)
        yield  # what makes it a generator

    async def test(self, mutants: Sequence[Mutant]) -> AsyncGenerator[Result, None]:
        """Raises ConfigurationError."""
        raise ConfigurationError(self.reason)
        yield

    async def diagnose(self) -> AsyncGenerator[Finding, None]:
        """The reason."""
        yield Finding(False, self.name, self.reason)

    async def aclose(self) -> None:
        """Nothing runs."""
