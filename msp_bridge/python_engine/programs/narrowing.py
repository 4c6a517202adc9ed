"""Narrowing: the same change of a text, said of a smaller place, for the tools' discovery; or of its next version."""

from __future__ import annotations

from collections.abc import Callable, Sequence

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


def moving(old: str, new: str) -> Callable[[Edit], Edit | None]:
    """Return what says of an edit of `old` which one it is of `new`; None where it concerns lines that differ."""
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    head = common(before, after)
    tail = common(before[head:][::-1], after[head:][::-1])
    same_until, same_from = len("".join(before[:head])), len("".join(before[: len(before) - tail]))
    further = len(new) - len(old)

    def moved(edit: Edit) -> Edit | None:
        start, end, replacement = edit
        if end <= same_until:
            return edit
        return None if start < same_from else (start + further, end + further, replacement)

    return moved


def common(one: Sequence[str], other: Sequence[str]) -> int:
    """How many characters, or lines, at the beginning are the same."""
    shorter = min(len(one), len(other))
    return next((at for at in range(shorter) if one[at] != other[at]), shorter)
