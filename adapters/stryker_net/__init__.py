"""Stryker.NET through the bridge: one run of it prepares a private copy, test hosts then test each mutant."""

from .adapter import StrykerNet

__all__ = ["StrykerNet"]
