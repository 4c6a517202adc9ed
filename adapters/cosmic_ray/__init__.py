"""cosmic-ray through the bridge: in private copies, several mutants at once."""

from __future__ import annotations

from .adapter import CosmicRay

__all__ = ["CosmicRay"]
