"""Where each editor has its plugins and its configuration, and how ours is put there: for `msp-bridge editors --write`.

A file of our own is replaced whole, unless somebody else's has its name. Into a file of the user's, only what is
missing is added, and what was there stays as it is, to the byte: also in VS Code's settings.json, which is JSON with
comments. What can't be done so is refused.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from attrs import frozen

from msp_bridge.errors import ConfigurationError

PATTERN = re.compile(r"\*\*/\*\.(?:(\w+)|\{([\w,]+)\})")
TOKEN = re.compile(r'\s+|//[^\r\n]*|/\*.*?\*/|"(?:[^"\\\r\n]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"/]+', re.DOTALL)
INDENT = re.compile(r'\{\s*?\n([ \t]+)(?=")')


def write_plugin(editor: str, text: str) -> list[str]:
    """Put what `msp-bridge editors` prints where the editor looks for it. A line for each file: what became of it.

    Raises ConfigurationError.
    """
    if editor not in WRITERS:  # their settings are the user's own, in a format that takes no second entry blindly
        raise ConfigurationError(f"--write can't do that for {editor}", "print it, and put it where its comment says")
    return WRITERS[editor](text)


def joined_patterns(old: str, new: str) -> str:
    """A glob of VS Code for what either of them matches; the old one itself where that is all the same."""
    found, wanted = PATTERN.fullmatch(old), PATTERN.fullmatch(new)
    if old == new or new in old.removeprefix("{").removesuffix("}").split(","):
        return old
    if found is None or wanted is None:
        return f"{{{old},{new}}}" if old else new
    endings = [*_endings(found), *(ending for ending in _endings(wanted) if ending not in _endings(found))]
    return old if endings == _endings(found) else f"**/*.{{{','.join(endings)}}}"


def _endings(match: re.Match[str]) -> list[str]:
    return (match[1] or match[2]).split(",")


def _neovim(text: str) -> list[str]:
    return [_own(_configuration("nvim") / "plugin/msp-bridge.lua", text)]


def _neovim_lsp(text: str) -> list[str]:
    return [_own(_configuration("nvim") / "plugin/msp-bridge-lsp.lua", text)]


def _vim(text: str) -> list[str]:
    return [_own(Path.home() / ".vim/compiler/mutants.vim", text)]


def _emacs(text: str) -> list[str]:
    old, new = Path.home() / ".emacs.d", _configuration("emacs")
    home = new if new.is_dir() and not old.is_dir() else old
    init = Path.home() / ".emacs" if (Path.home() / ".emacs").is_file() else home / "init.el"
    plugin = home / "msp-bridge.el"
    load = f'(load "{_quoted(plugin.with_suffix(""))}")'
    done = _own(plugin, text)
    before = _text(init)
    if "msp-bridge" in re.sub(r"^\s*;.*$", "", before, flags=re.MULTILINE):  # loaded in the user's own way
        return [done, f"nothing to change: {init}"]
    return [done, _replace(init, _appended(before, load + "\n"))]


def _helix(text: str) -> list[str]:
    file = _configuration("helix") / "config.toml"
    before = _text(file)
    after = _appended(before, text)
    try:
        known, added = tomllib.loads(before), tomllib.loads(text)
        if _holds(known, added):
            return [f"nothing to change: {file}"]
        if _holds(tomllib.loads(after), known):
            return [_replace(file, after)]
        reason = "it already says something else there"
    except tomllib.TOMLDecodeError as error:
        reason = str(error)
    raise _left_alone(file, reason, "helix")


WRITERS: dict[str, Callable[[str], list[str]]] = {
    "neovim-lsp": _neovim_lsp,
    "neovim": _neovim,
    "vim": _vim,
    "emacs": _emacs,
    "helix": _helix,
}


def _holds(table: Mapping[str, object], part: Mapping[str, object]) -> bool:
    """Whether `table` says all that `part` says."""
    for key, value in part.items():
        there = table.get(key)
        if isinstance(value, Mapping):
            if not isinstance(there, Mapping) or not _holds(there, value):
                return False
        elif there != value:
            return False
    return True


def _configuration(program: str) -> Path:
    """Its directory, by the XDG base directory specification."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / program


def _own(file: Path, text: str) -> str:
    """Write a file that is ours alone: it is known by its first line."""
    before = _text(file)
    if before and before.partition("\n")[0] != text.partition("\n")[0]:
        raise ConfigurationError(f"{file} was left as it is, for it is none of ours", "move it, then try again")
    return f"nothing to change: {file}" if before == text else _replace(file, text)


def _text(file: Path) -> str:
    try:
        return file.read_bytes().decode() if file.exists() else ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{file} can't be read: {error}") from None


def _appended(before: str, text: str) -> str:
    newline = "\r\n" if "\r\n" in before else "\n"
    gap = "" if not before else newline if before.endswith("\n") else 2 * newline
    return before + gap + text.replace("\n", newline)


def _replace(file: Path, text: str) -> str:
    """Links are followed: many keep such files in a repository of their own."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())
    except OSError as error:
        raise ConfigurationError(f"{file} can't be written: {error.strerror}") from None
    return f"written: {file}"


def _left_alone(file: Path, reason: str, editor: str) -> ConfigurationError:
    return ConfigurationError(
        f"{file} was left as it is, for {reason}", f"`msp-bridge editors {editor}` prints what to put into it"
    )


def _quoted(path: Path) -> str:
    return str(path).replace("\\", "\\\\").replace('"', '\\"')


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
