"""The text of a Python file as tools see it, and an edit that keeps the file's encoding, byte order mark and line ends.

Tools and the compiler see the *normal* text: decoded, without a byte order mark, each line ended by `\\n`. All offsets
are code points of it. A mutant is such an edit; the mutated file is made where it is written.
"""

from __future__ import annotations

import io
import re
import tokenize
from bisect import bisect_right
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

BOM = "\ufeff"
LINE_END = re.compile("\r\n?")


def digest_of(data: bytes) -> str:
    """Names the content of a file."""
    return blake2b(data, digest_size=16).hexdigest()


class PythonText:
    """The text in the bytes of a Python file."""

    def __init__(self, data: bytes) -> None:
        """Raises SyntaxError or UnicodeDecodeError for bytes that Python can't read either."""
        self.encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)  # `utf-8-sig` where a mark stands
        self.text = data.decode(self.encoding).removeprefix(BOM)  # with its own line ends

    @cached_property
    def normal(self) -> str:
        """The text as tools mutate it."""
        return LINE_END.sub("\n", self.text)

    @cached_property
    def _shortened(self) -> list[int]:
        """The offsets in `normal` just after each line end that was two characters."""
        found = enumerate(match.end() for match in LINE_END.finditer(self.text) if len(match[0]) == 2)
        return [end - number - 1 for number, end in found]

    def offset(self, normal: int) -> int:
        """The offset in `text` of the character at `normal`."""
        return normal + bisect_right(self._shortened, normal)

    def with_line_ends(self, replacement: str) -> str:
        """The text `replacement`, with the line ends that most lines of the file have."""
        crlf = len(self._shortened) * 2 > self.normal.count("\n")
        return replacement.replace("\n", "\r\n") if crlf else replacement

    def edited(self, start: int, end: int, replacement: str) -> bytes:
        """The file with `replacement` in the place of `normal[start:end]`. Raises UnicodeEncodeError."""
        first, last = self.text[: self.offset(start)], self.text[self.offset(end) :]
        return (first + self.with_line_ends(replacement) + last).encode(self.encoding)


def normal_text(file: str | Path) -> str:
    """The normal text of a Python file. Raises OSError, SyntaxError or UnicodeDecodeError."""
    return PythonText(Path(file).read_bytes()).normal


class FileEdit(NamedTuple):
    """`normal[start:end]` of the file whose bytes have `digest` becomes `replacement`."""

    path: str  # relative to the project, with `/`
    digest: str
    start: int
    end: int
    replacement: str

    def text(self, data: bytes) -> PythonText:
        """The text that it is of. Raises OSError where `data` is another version of the file."""
        if digest_of(data) != self.digest:
            raise OSError(f"{self.path} is not the version that the mutant is of")
        return PythonText(data)

    def applied(self, text: PythonText) -> bytes:
        """The mutated file."""
        return text.edited(self.start, self.end, self.replacement)
