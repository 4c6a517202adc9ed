"""Counts: how many mutants there are in how many files, in words."""

from __future__ import annotations

from collections.abc import Collection

from msp_bridge.model import Mutant


def counted(mutants: Collection[Mutant]) -> str:
    """As `12 mutants in 1 file`."""
    files = {mutant.path for mutant in mutants}
    return f"{_count(len(mutants), 'mutant')} in {_count(len(files), 'file')}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
