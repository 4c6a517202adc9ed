"""Text that is safe to show: names and messages come from projects and tools, and may hold anything.

A terminal obeys control characters, and right-to-left marks change what a line seems to say. A file name that is not
UTF-8 has lone surrogates, which no encoder takes. Both are shown as escapes, as in a Python string.
"""

from __future__ import annotations

import re

UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
SURROGATES = re.compile("[\ud800-\udfff]")


def visible(text: str) -> str:
    """`text` for a terminal: control characters (but tab and newline) and lone surrogates as escapes."""
    return UNSAFE.sub(_escape, text)


def one_line(text: str) -> str:
    """`text` for a place of one line in a terminal: newlines and tabs are escaped too."""
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")


def encodable(text: str) -> str:
    """`text` that every Unicode encoding takes: lone surrogates as escapes."""
    return SURROGATES.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
