"""cosmic-ray through the bridge: its mutants, tested in sandboxes, several at once."""

from __future__ import annotations

from .adapter import CosmicRay

__all__ = ["CosmicRay"]
