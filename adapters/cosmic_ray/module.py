"""Module: a Python file as it is, as cosmic-ray reads it, and the way between the two."""

from __future__ import annotations

import io
import re
import tokenize
from bisect import bisect_right
from functools import cached_property
from hashlib import blake2b
from pathlib import Path

from attrs import frozen

from msp_bridge.reading import content
from msp_bridge.source import BOM, SourceText

LINE_END = re.compile("\r\n?")


@frozen
class Module:
    """One version of a file. cosmic-ray sees `normal`: decoded, without a byte order mark, each line ended by `\\n`.

    cosmic-ray writes a mutated file in that form and as UTF-8, so that the mutants of a file in latin-1 are killed by
    their encoding. Here the mutated file keeps its encoding, its byte order mark and its line ends.
    """

    path: str
    data: bytes
    encoding: str  # as Python names it, `utf-8-sig` when there's a byte order mark

    @classmethod
    def read(cls, root: Path, path: str) -> Module:
        """Raises `OSError`, and `SyntaxError` or `UnicodeDecodeError` for a file that Python couldn't read either."""
        data = content(root / path)
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        data.decode(encoding)
        return cls(path, data, encoding)

    @cached_property
    def digest(self) -> str:
        """Names the content of the file."""
        return blake2b(self.data, digest_size=16).hexdigest()

    @cached_property
    def source(self) -> SourceText:
        """The text with its own line ends."""
        return SourceText(self.data.decode(self.encoding).removeprefix(BOM))

    @cached_property
    def normal(self) -> str:
        """The text that cosmic-ray mutates."""
        return LINE_END.sub("\n", self.source.text)

    @cached_property
    def _shortened(self) -> list[int]:
        """The offsets in `normal` just after each line end that was two characters."""
        found = enumerate(match.end() for match in LINE_END.finditer(self.source.text) if len(match[0]) == 2)
        return [end - number - 1 for number, end in found]

    def offset(self, normal: int) -> int:
        """The offset in the file's text of the character at `normal`."""
        return normal + bisect_right(self._shortened, normal)

    def replacement(self, text: str) -> str:
        """New text with the file's line ends."""
        return text.replace("\n", "\r\n") if self._shortened else text

    def mutated(self, start: int, end: int, replacement: str) -> bytes:
        """The file with `replacement` instead of `source.text[start:end]`."""
        text = self.source.text
        return (text[:start] + replacement + text[end:]).encode(self.encoding)
