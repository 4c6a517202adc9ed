"""A Python file as it is, as Python's tools read it, and the way between the two; a mutant as a change of it.

And where such files are likely to lie in a project.
"""

from __future__ import annotations

import io
import tokenize
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from attrs import field, frozen

from msp_bridge.model import Location
from msp_bridge.python_engine.programs.file_edit import PythonText, digest_of
from msp_bridge.reading import content
from msp_bridge.source import SourceText

LAYOUT = {tokenize.NL, tokenize.NEWLINE, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING}
NO_PACKAGES = frozenset(
    ["test", "tests", "doc", "docs", "example", "examples", "benchmark", "benchmarks", "scripts", "tools", "build"]
)
SINGLE_FILES = frozenset({"setup.py", "conftest.py", "noxfile.py", "tasks.py", "manage.py"})


@frozen
class PythonSource:
    """One version of a file. Tools see `normal`; see `programs/file_edit`."""

    path: str  # relative to the project's root, with `/`
    data: bytes
    as_python: PythonText = field(eq=False, repr=False)

    @classmethod
    def read(cls, root: Path, path: str) -> PythonSource:
        """Raises `OSError`, and `SyntaxError` or `UnicodeDecodeError` for a file that Python can't read either."""
        data = content(root / path)
        return cls(path, data, PythonText(data))

    @cached_property
    def digest(self) -> str:
        """Names the content of the file."""
        return digest_of(self.data)

    @cached_property
    def text(self) -> SourceText:
        """The text with its own line ends."""
        return SourceText(self.as_python.text)

    @property
    def normal(self) -> str:
        """The text as tools mutate it."""
        return self.as_python.normal

    def offset(self, normal: int) -> int:
        """The offset in the file's text of the character at `normal`."""
        return self.as_python.offset(normal)

    def comment(self, offset: int, text: str) -> PythonEdit | None:
        """Adds a comment at the end of the line of `offset` (in `normal`); None where none can stand.

        That is where the line ends in a string, or in a backslash. Raises `SyntaxError` for a text of no tokens.
        """
        line = self._lines.position(offset).line
        if line not in {token.end[0] for token in self._tokens if token.type == tokenize.COMMENT} | {
            token.start[0] for token in self._tokens if token.type in (tokenize.NEWLINE, tokenize.NL)
        }:
            return None
        start, end = self._lines.line_offsets(line)
        end = start + len(self.normal[start:end].rstrip())
        return PythonEdit(self, end, end, f"  {text}")

    def enclosed(self, offset: int, before: str, after: str) -> PythonEdit:
        """Puts the whole statement, or its header, at `offset` (in `normal`) between two lines of comments.

        Raises `SyntaxError` for a text of no tokens.
        """
        line, first, last = self._lines.position(offset).line, 0, 0
        for token in self._tokens:
            if token.type not in LAYOUT and not first:
                first = token.start[0]
            if token.type == tokenize.NEWLINE:
                last = token.start[0]
                if last >= line:
                    break
                first = 0
        (start, _), (_, end) = map(self._lines.line_offsets, (first, last))
        lines = self.normal[start:end]
        indentation = lines[: len(lines) - len(lines.lstrip())]
        return PythonEdit(self, start, end, f"{indentation}{before}\n{lines}\n{indentation}{after}")

    @cached_property
    def _tokens(self) -> list[tokenize.TokenInfo]:
        try:
            return list(tokenize.generate_tokens(io.StringIO(self.normal).readline))
        except tokenize.TokenError as error:
            raise SyntaxError(str(error)) from None

    @cached_property
    def _lines(self) -> SourceText:
        return SourceText(self.normal)


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
        return self.source.as_python.with_line_ends(self.normal_replacement)

    @property
    def normal(self) -> str:
        """The mutated text as tools read it."""
        return self.source.normal[: self.start] + self.normal_replacement + self.source.normal[self.end :]

    @property
    def content(self) -> bytes:
        """The mutated file."""
        return self.source.as_python.edited(self.start, self.end, self.normal_replacement)


def likely_sources(root: Path) -> list[str]:
    """The packages, or else the modules, of a project that doesn't say where they are: paths relative to `root`.

    Or else the packages of its namespaces, which are folders without an `__init__.py`.
    """
    for base in (root / "src", root):
        files = sorted(
            file for file in base.glob("*.py") if file.name not in SINGLE_FILES and not file.name.startswith("test")
        )
        if found := _packages(base, "*/__init__.py") or files or _packages(base, "*/*/__init__.py"):
            return [path.relative_to(root).as_posix() for path in found]
    return []


def _packages(base: Path, pattern: str) -> list[Path]:
    folders = (file.parent for file in base.glob(pattern))
    return sorted(folder for folder in folders if _may_be_imported(folder.relative_to(base).parts))


def _may_be_imported(names: Sequence[str]) -> bool:
    return all(name.isidentifier() and name not in NO_PACKAGES for name in names)
