"""cargo-mutants through the bridge: its own runs, in its own private copies, each result as soon as it is known."""

from __future__ import annotations

from .adapter import CargoMutants

__all__ = ["CargoMutants"]
