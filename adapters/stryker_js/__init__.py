"""StrykerJS."""

from .adapter import StrykerJs

__all__ = ["StrykerJs"]
