"""Text for people: counts in words, and escapes for names and messages, which come from projects and may hold anything.

A terminal executes control characters, and right-to-left marks change how a line reads. A file name that is not
UTF-8 has lone surrogates, which no encoder takes. Both are shown as escapes, as in a Python string.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from msp_bridge.model import Mutant

UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
SURROGATES = re.compile("[\ud800-\udfff]")


def release(version: str) -> tuple[int, ...]:
    """The first release numbers in `version`, for comparing: (20, 11, 0) of "v20.11.0", (22,) of ">=22"."""
    found = re.search(r"\d+(\.\d+)*", version)
    return tuple(map(int, found[0].split("."))) if found else ()


def counted(number: int, noun: str) -> str:
    """Count, as in `1 file`, `2 files`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def counted_mutants(mutants: Iterable[Mutant]) -> str:
    """Count mutants, as in `12 mutants in 1 file`."""
    paths = [mutant.path for mutant in mutants]
    return f"{counted(len(paths), 'mutant')} in {counted(len(set(paths)), 'file')}"


def first_of(
    items: Sequence[Any], most: int, shown: Callable[[Any], str] = str, *, more: str = "… {} more"
) -> list[str]:
    """The first `most` of `items`, each as `shown` writes it, and last how many more there are."""
    left = len(items) - most
    return [*map(shown, items[:most]), *([more.format(left)] if left > 0 else ())]


def enumerated(items: Sequence[str], most: int, shown: Callable[[str], str] = str, *, between: str = ", ") -> str:
    """The first `most` of `items` in one line, as in `a, b and 3 more`."""
    left = len(items) - most
    return between.join(map(shown, items[:most])) + (f" and {left} more" if left > 0 else "")


def visible(text: str) -> str:
    """`text` for a terminal: control characters (but tab and newline) and lone surrogates as escapes."""
    return UNSAFE.sub(_escape, text)


def one_line(text: str) -> str:
    """`text` for a place of one line in a terminal: newlines and tabs are escaped too."""
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")


def shortened(text: str, most: int) -> str:
    """`text`, cut to `most` characters."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def encodable(text: str) -> str:
    """`text` that every Unicode encoding takes: lone surrogates as escapes."""
    return text if text.isascii() else SURROGATES.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
