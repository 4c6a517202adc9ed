"""VS Code's settings.json: JSON with comments, which comes out of a change as it went in but for what is changed."""

# The libraries that read such files (json5, json-five, pyjson5) either can't write one back as it was, or are slow and
# little used. This needs no parser of its own: tokens show where a value begins and ends, and `json` reads the rest.

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from attrs import frozen

from msp_bridge.errors import ConfigurationError

TOKEN = re.compile(r'\s+|//[^\r\n]*|/\*.*?\*/|"(?:[^"\\\r\n]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"/]+', re.DOTALL)
INDENT = re.compile(r'\{\s*?\n([ \t]+)(?=")')


@frozen
class Token:
    """What is neither a space nor a comment, with the depth of the brackets around it."""

    text: str
    start: int
    end: int
    depth: int


@frozen
class Member:
    """A key of the outermost object, and where its value stands."""

    key: str
    start: int
    end: int


def parse(text: str) -> dict[str, Any]:
    """What settings.json says. Raises ConfigurationError when it isn't an object, or can't be read."""
    tokens = [token.text for token in _tokens(text)]
    trailing = {number for number, pair in enumerate(pairwise(tokens)) if pair in ((",", "]"), (",", "}"))}
    kept = [token for number, token in enumerate(tokens) if number not in trailing]
    try:
        settings = json.loads(" ".join(kept) or "{}")
    except ValueError as error:
        raise ConfigurationError(f"it can't be read: {error}") from None
    if not isinstance(settings, dict):
        raise ConfigurationError("it is no object: it must begin with {")
    return settings


def merged(text: str, settings: Mapping[str, Any]) -> str:
    """`text` with `settings` in it; comments, order and layout stay. Raises ConfigurationError."""
    expected = {**parse(text), **settings}
    for key, value in settings.items():
        text = _with(text, key, json.dumps(value, ensure_ascii=False))
    if parse(text) != expected:  # the promise above is worth more than a change
        raise ConfigurationError("it is written in a way that can't be changed safely")
    return text


def _tokens(text: str) -> Iterator[Token]:
    position = depth = 0
    while position < len(text):
        found = TOKEN.match(text, position)
        if found is None:
            line = text.count("\n", 0, position) + 1
            raise ConfigurationError(f"it can't be read: line {line} has {text[position : position + 10]!r}")
        token, position = found[0], found.end()
        if token in ("]", "}"):
            depth -= 1
        if not token.isspace() and not token.startswith(("//", "/*")):
            yield Token(token, found.start(), position, depth)
        if token in ("[", "{"):
            depth += 1


def _members(tokens: list[Token]) -> Iterator[Member]:
    """Of an object that `parse` could read."""
    inside = tokens[1:-1]
    starts = [number for number, token in enumerate(inside) if token.text == ":" and token.depth == 1]
    for number in starts:
        end = number + 1
        while end + 1 < len(inside) and not (inside[end + 1].text == "," and inside[end + 1].depth == 1):
            end += 1
        yield Member(json.loads(inside[number - 1].text), inside[number + 1].start, inside[end].end)


def _with(text: str, key: str, value: str) -> str:
    tokens = list(_tokens(text))
    if not tokens:
        comment = f"{text.rstrip()}\n" if text.strip() else ""
        return f"{comment}{{\n  {json.dumps(key, ensure_ascii=False)}: {value}\n}}\n"
    same = [member for member in _members(tokens) if member.key == key]
    if same:  # of several, VS Code takes the last
        return text[: same[-1].start] + value + text[same[-1].end :]
    indent = INDENT.search(text)
    newline = "\r\n" if "\r\n" in text else "\n"
    entry = f"{newline}{indent[1] if indent else '  '}{json.dumps(key, ensure_ascii=False)}: {value}"
    *_, last, brace = tokens
    body = text[last.end : brace.start].rstrip()  # a comment may follow the last value
    space = text[last.end + len(body) : brace.start]
    comma = "" if last.text == "," or len(tokens) == 2 else ","
    entry += "," if last.text == "," else ""
    return text[: last.end] + comma + body + entry + (space if "\n" in space else newline) + text[brace.start :]
