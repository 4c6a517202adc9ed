"""StrykerJS."""

from __future__ import annotations

from .adapter import StrykerJs

__all__ = ["StrykerJs"]
