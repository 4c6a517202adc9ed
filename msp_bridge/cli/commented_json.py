"""JSON with comments and trailing commas, as editors' settings are written: read, and changed without losing anything.

An entry is added or replaced where it stands in the text, so comments, order and layout stay. What can't be done so is
refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from attrs import evolve, frozen

from msp_bridge.errors import ConfigurationError

TOKEN = re.compile(r'\s+|//[^\r\n]*|/\*.*?\*/|"(?:[^"\\\r\n]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"/]+', re.DOTALL)


@frozen
class JsonToken:
    """A token that is neither space nor comment, with the depth of the brackets around it."""

    text: str
    start: int
    end: int
    depth: int


@frozen
class Layout:
    """How an object is written: the margin of the line that it begins in, one step of indentation, and the line end."""

    margin: str
    step: str
    newline: str


@frozen
class Member:
    """A key of an object, and where its value stands."""

    key: str
    start: int
    end: int


def parse(text: str) -> dict[str, Any]:
    """The object that the text is. Raises ConfigurationError when it isn't an object, or can't be read."""
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
    """`text` with `settings` in it, objects within objects too; comments, order and layout stay.

    Raises ConfigurationError.
    """
    expected = _joined(parse(text), settings)
    step = _margin(text, list(_tokens(text))) or "  "
    text = _merged(text, settings, Layout("", step, "\r\n" if "\r\n" in text else "\n"))
    if parse(text) != expected:  # the promise above is worth more than a change
        raise ConfigurationError("it is written in a way that can't be changed safely")
    return text


def _joined(known: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    both = {key: (known[key], value) for key, value in settings.items() if key in known}
    objects = {key: _joined(*pair) for key, pair in both.items() if all(isinstance(side, dict) for side in pair)}
    return {**known, **settings, **objects}


def _tokens(text: str) -> Iterator[JsonToken]:
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
            yield JsonToken(token, found.start(), position, depth)
        if token in ("[", "{"):
            depth += 1


def _members(tokens: list[JsonToken]) -> Iterator[Member]:
    """Yield the members of an object that `parse` could read."""
    inside = tokens[1:-1]
    starts = [number for number, token in enumerate(inside) if token.text == ":" and token.depth == 1]
    for number in starts:
        end = number + 1
        while end + 1 < len(inside) and not (inside[end + 1].text == "," and inside[end + 1].depth == 1):
            end += 1
        yield Member(json.loads(inside[number - 1].text), inside[number + 1].start, inside[end].end)


def _merged(text: str, settings: Mapping[str, Any], layout: Layout) -> str:
    for key, value in settings.items():
        text = _with(text, key, value, layout)
    return text


def _with(text: str, key: str, value: Any, layout: Layout) -> str:
    tokens = list(_tokens(text))
    if not tokens:
        comment = f"{text.rstrip()}\n" if text.strip() else ""
        return f"{comment}{_written({key: value}, layout)}\n"
    inner = evolve(layout, margin=_margin(text, tokens) or layout.margin + layout.step)
    same = [member for member in _members(tokens) if member.key == key]
    if same:  # of several, VS Code takes the last
        old = text[same[-1].start : same[-1].end]
        both = isinstance(value, dict) and old.startswith("{")
        new = _merged(old, value, inner) if both else _written(value, inner)
        return text[: same[-1].start] + new + text[same[-1].end :]
    entry = f"{layout.newline}{inner.margin}{_written(key, inner)}: {_written(value, inner)}"
    *_, last, brace = tokens
    body = text[last.end : brace.start].rstrip()  # a comment may follow the last value
    space = text[last.end + len(body) : brace.start]
    comma = "" if last.text == "," or len(tokens) == 2 else ","
    entry += "," if last.text == "," else ""
    space = space if "\n" in space else layout.newline + layout.margin
    return text[: last.end] + comma + body + entry + space + text[brace.start :]


def _margin(text: str, tokens: list[JsonToken]) -> str:
    """The indent of an object's first key; empty if something else stands before the key."""
    line = text[: tokens[1].start].rpartition("\n")[2] if len(tokens) > 2 else ""
    return line if line.isspace() else ""


def _written(value: Any, layout: Layout) -> str:
    """`value` as JSON, in a line that begins with the margin: objects have a line for each entry, lists have one."""
    if not isinstance(value, dict) or not value:
        return json.dumps(value, ensure_ascii=False)
    inner = evolve(layout, margin=layout.margin + layout.step)
    entries = [f"{inner.margin}{_written(key, inner)}: {_written(item, inner)}" for key, item in value.items()]
    return layout.newline.join(["{", f",{layout.newline}".join(entries), f"{layout.margin}}}"])
