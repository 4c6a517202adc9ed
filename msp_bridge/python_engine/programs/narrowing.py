"""Narrowing: the same change of a text, said of a smaller place. For the tools' discovery."""

from __future__ import annotations

Edit = tuple[int, int, str]  # text[start:end] becomes the replacement; offsets in code points


def narrowed(text: str, edit: Edit, start: int, end: int) -> Edit:
    """The edit for text[start:end], or for more where it changes more. It gives the same text as `edit`."""
    first, last, replacement = edit
    before, after = text[first:start], text[end:last]
    inside = first <= start and end <= last and len(replacement) >= len(before) + len(after)
    if inside and replacement.startswith(before) and replacement.endswith(after):
        return start, end, replacement[len(before) : len(replacement) - len(after)]
    old = text[first:last]
    head = common(old, replacement)
    tail = common(old[head:][::-1], replacement[head:][::-1])
    changed, unchanged = first + head, last - tail
    wide_start, wide_end = min(start, changed), max(end, unchanged)
    middle = replacement[head : len(replacement) - tail]
    return wide_start, wide_end, text[wide_start:changed] + middle + text[unchanged:wide_end]


def common(one: str, other: str) -> int:
    """How many characters at the beginning are the same."""
    shorter = min(len(one), len(other))
    return next((at for at in range(shorter) if one[at] != other[at]), shorter)
