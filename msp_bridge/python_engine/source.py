"""A Python file as it is, as Python's tools read it, and the way between the two; and a mutant as a change of it."""

from __future__ import annotations

import io
import re
import tokenize
from bisect import bisect_right
from functools import cached_property
from hashlib import blake2b
from pathlib import Path

from attrs import frozen

from msp_bridge.model import Location
from msp_bridge.reading import content
from msp_bridge.source import BOM, SourceText

LINE_END = re.compile("\r\n?")


@frozen
class PythonSource:
    """One version of a file. Tools see `normal`: decoded, without a byte order mark, each line ended by `\\n`.

    A mutated file keeps the file's encoding, its byte order mark and its line ends.
    """

    path: str  # relative to the project's root, with `/`
    data: bytes
    encoding: str  # as Python names it, `utf-8-sig` when there is a byte order mark

    @classmethod
    def read(cls, root: Path, path: str) -> PythonSource:
        """Raises `OSError`, and `SyntaxError` or `UnicodeDecodeError` for a file that Python can't read either."""
        data = content(root / path)
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        data.decode(encoding)
        return cls(path, data, encoding)

    @cached_property
    def digest(self) -> str:
        """Names the content of the file."""
        return blake2b(self.data, digest_size=16).hexdigest()

    @cached_property
    def text(self) -> SourceText:
        """The text with its own line ends."""
        return SourceText(self.data.decode(self.encoding).removeprefix(BOM))

    @cached_property
    def normal(self) -> str:
        """The text as tools mutate it."""
        return LINE_END.sub("\n", self.text.text)

    @cached_property
    def _shortened(self) -> list[int]:
        """The offsets in `normal` just after each line end that was two characters."""
        found = enumerate(match.end() for match in LINE_END.finditer(self.text.text) if len(match[0]) == 2)
        return [end - number - 1 for number, end in found]

    def offset(self, normal: int) -> int:
        """The offset in the file's text of the character at `normal`."""
        return normal + bisect_right(self._shortened, normal)

    def edit(self, start: int, end: int, replacement: str) -> PythonEdit:
        """The change that puts `replacement` in the place of `normal[start:end]`."""
        return PythonEdit(self, start, end, replacement)


@frozen
class PythonEdit:
    """`source.normal[start:end]` becomes `normal_replacement`; offsets in code points. The handle of a mutant."""

    source: PythonSource
    start: int
    end: int
    normal_replacement: str

    @property
    def location(self) -> Location:
        """In the file, as the protocol has it."""
        return self.source.text.location(self.source.offset(self.start), self.source.offset(self.end))

    @property
    def original(self) -> str:
        """The text that is replaced, with the file's line ends."""
        return self.source.text.text[self.source.offset(self.start) : self.source.offset(self.end)]

    @property
    def replacement(self) -> str:
        """The text in its place, with the file's line ends."""
        crlf = len(self.source._shortened) * 2 > self.source.normal.count("\n")
        return self.normal_replacement.replace("\n", "\r\n") if crlf else self.normal_replacement

    @property
    def content(self) -> bytes:
        """The mutated file."""
        text, source = self.source.text.text, self.source
        mutated = text[: source.offset(self.start)] + self.replacement + text[source.offset(self.end) :]
        return mutated.encode(source.encoding)
