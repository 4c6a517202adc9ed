"""Mentions in a text of the project: of names, and of documents that it may read."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Collection, Iterable, Iterator
from pathlib import PurePosixPath


def encoded(text: str) -> bytes:
    """The bytes of a text in which words are looked for."""
    return text.encode("utf-8", "surrogatepass")


def word_of(names: Iterable[str], before: bytes = b"") -> re.Pattern[bytes]:
    """Finds any of the names as a word; `before`: a pattern for what stands in front of it."""
    return re.compile(before + rb"\b(?:%s)\b" % b"|".join(re.escape(encoded(name)) for name in names))


def mentions(text: bytes, names: Collection[str]) -> bool:
    """Whether one of the names is a word of the text."""
    return bool(names) and word_of(names).search(text) is not None


def reading(documents: Iterable[str]) -> re.Pattern[bytes]:
    """Finds code that may read one of the documents, whose paths are relative to the project."""
    return re.compile(b"|".join(pattern for path in documents for pattern in _reading(PurePosixPath(path))))


def _reading(document: PurePosixPath) -> Iterator[bytes]:
    """Patterns of code that reads it: by its name, among others with its suffix, or in its directory."""
    yield rb"\b%s\b" % re.escape(encoded(document.name))
    yield rb"(?<!\w)%s\b" % re.escape(encoded(document.suffix))
    if document.stem.isupper():
        yield rb"\b%s\b" % re.escape(encoded(document.stem))
    for part in document.parent.parts:
        yield rb"[\"'/]%s[\"'/]" % re.escape(encoded(part))


def without_comments(text: bytes) -> bytes:
    """The words of Python code without its comments; any other text as it is."""
    try:
        tokens = [token for token in tokenize.tokenize(io.BytesIO(text).readline) if token.type != tokenize.COMMENT]
    except (SyntaxError, tokenize.TokenError):
        return text  # a configuration file
    return encoded(" ".join(token.string for token in tokens))
