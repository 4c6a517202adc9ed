"""mutmut, for Python projects whose tests run under pytest."""

from __future__ import annotations

from .adapter import Mutmut

__all__ = ["Mutmut"]
