"""Counts: how many of something there are, in words."""

from __future__ import annotations

from collections.abc import Iterable

from msp_bridge.model import Mutant


def counted(number: int, noun: str) -> str:
    """As `1 file`, `2 files`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def counted_mutants(mutants: Iterable[Mutant]) -> str:
    """As `12 mutants in 1 file`."""
    paths = [mutant.path for mutant in mutants]
    return f"{counted(len(paths), 'mutant')} in {counted(len(set(paths)), 'file')}"
