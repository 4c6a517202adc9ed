"""PIT through the bridge: its mutants, each tested by its own minion, in a private copy that Maven compiles."""

from __future__ import annotations

from .adapter import Pit

__all__ = ["Pit"]
