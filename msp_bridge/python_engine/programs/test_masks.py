"""Sets of tests as integers: the bit of a test has its index."""

from __future__ import annotations

from collections.abc import Iterator, Mapping


def masks(lines: Mapping[str, Mapping[str, str]]) -> dict[str, dict[int, int]]:
    """Path to line to tests, from JSON."""
    return {path: {int(line): int(mask, 16) for line, mask in found.items()} for path, found in lines.items()}


def bits(mask: int) -> Iterator[int]:
    """The tests of a set."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
