"""Edits: changes of a file's text that are proposed and shown, as a unified diff, and never written.

A mutant is one, and so is the comment by which a tool leaves a mutant out. Front ends show both; adapters make the
second (`adapter.IgnoresMutants`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from attrs import frozen

from msp_bridge.model import Location, Mutant
from msp_bridge.source import SourceText

CONTEXT = 3  # lines around a change, as git and diff show them
LINE = re.compile(r"[^\n]*\n|[^\n]+")


@frozen
class Edit:
    """The text in `location` of the file `path` becomes `text`. An insertion has an empty location."""

    path: str  # as of a mutant
    location: Location
    text: str
    effect: str  # what the tool leaves out then, such as "every mutant that begins in this line"

    def apply(self, source: SourceText) -> str:
        """The text with the edit made; raises ValueError when it has no such location."""
        start, end = source.offset(self.location.start), source.offset(self.location.end)
        return source.text[:start] + self.text + source.text[end:]


def above_line(path: str, source: SourceText, line: int, comment: str, effect: str) -> Edit:
    """Adds a line with `comment` above the line `line` (1-based), indented like it, with the line ends of the file."""
    start, end = source.line_offsets(line)
    text = source.text[start:end]
    line_end = "\r\n" if text.endswith("\r") else "\n"
    indentation = text[: len(text) - len(text.lstrip())].rstrip("\r")
    return Edit(path, source.location(start, start), f"{indentation}{comment}{line_end}", effect)


def in_comment(reason: str, before: str) -> str:
    """`before` and `reason` as they can stand in a comment that ends with its line; "" without a reason."""
    words = "".join(character if character.isprintable() else " " for character in reason).split()
    return f"{before}{' '.join(words)}" if words else ""


def mutant_diff(source: SourceText, mutant: Mutant) -> str:
    """What `mutant` changes in its file, which holds `source`, as a unified diff; raises ValueError when it can't."""
    return unified_diff(mutant.path, source.text, source.apply(mutant))


def edit_diff(source: SourceText, edit: Edit) -> str:
    """What `edit` changes in its file, which holds `source`, as a unified diff; raises ValueError when it can't."""
    return unified_diff(edit.path, source.text, edit.apply(source))


def unified_diff(path: str, before: str, after: str) -> str:
    """The change from `before` to `after` as `patch -p1` and `git apply` take it; "" when there is none.

    Lines end at `\\n`, and a `\\r` before it is part of the line. What both texts begin or end with costs little.
    """
    if before == after:
        return ""
    old, new = LINE.findall(before), LINE.findall(after)
    same = next(
        (n for n, (one, other) in enumerate(zip(old, new, strict=False)) if one != other), min(len(old), len(new))
    )
    skipped = max(0, same - CONTEXT)
    rest = list(zip(reversed(old[same:]), reversed(new[same:]), strict=False))
    tail = max(0, next((n for n, (one, other) in enumerate(rest) if one != other), len(rest)) - CONTEXT)
    hunks = _hunks(old[skipped : len(old) - tail], new[skipped : len(new) - tail], skipped)
    return f"--- a/{path}\n+++ b/{path}\n{''.join(hunks)}"


def _hunks(old: Sequence[str], new: Sequence[str], skipped: int) -> Iterator[str]:
    for group in SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(CONTEXT):
        first, last = group[0], group[-1]
        yield f"@@ -{_range(first[1], last[2], skipped)} +{_range(first[3], last[4], skipped)} @@\n"
        for kind, start, end, new_start, new_end in group:
            if kind == "equal":
                yield from (_line(" ", line) for line in old[start:end])
            else:
                yield from (_line("-", line) for line in old[start:end])
                yield from (_line("+", line) for line in new[new_start:new_end])


def _range(start: int, end: int, skipped: int) -> str:
    """The first line (1-based) and how many there are; the line before where there is none."""
    count = end - start
    return f"{start + skipped + (count > 0)},{count}"


def _line(sign: str, line: str) -> str:
    return f"{sign}{line}" if line.endswith("\n") else f"{sign}{line}\n\\ No newline at end of file\n"
