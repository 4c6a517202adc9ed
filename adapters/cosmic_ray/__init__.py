"""cosmic-ray through the bridge: its mutants, tested in sandboxes, several at once."""

from .adapter import CosmicRay

__all__ = ["CosmicRay"]
