"""PIT through the bridge: its mutants, each tested by PIT's own code, in a private copy that Maven compiles."""

from .adapter import Pit

__all__ = ["Pit"]
