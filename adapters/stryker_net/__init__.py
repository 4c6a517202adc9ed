"""Stryker.NET through the bridge: in a private copy, results from its real-time stream, its report as judge."""

from __future__ import annotations

from .adapter import StrykerNet

__all__ = ["StrykerNet"]
