"""Sets of tests as integers: the bit of a test has its index."""

from __future__ import annotations

from collections.abc import Iterator, Mapping


def masks(lines: Mapping[str, Mapping[str, str]]) -> dict[str, dict[int, int]]:
    """Path to line to tests, from JSON."""
    return {path: {int(line): int(mask, 16) for line, mask in found.items()} for path, found in lines.items()}


def bits(mask: int) -> Iterator[int]:
    """The tests of a set. Each step on a number of 60,000 bits takes microseconds: so its digits are searched."""
    digits = bin(mask)[:1:-1]
    test = digits.find("1")
    while test >= 0:
        yield test
        test = digits.find("1", test + 1)
