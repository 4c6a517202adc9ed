"""Where each editor has its plugins and its configuration, and how ours is put there: for `msp-bridge editors --write`.

A file of our own is replaced whole, unless somebody else's has its name. Into a file of the user's, only what is
missing is added, and what was there stays as it is, to the byte: also in VS Code's settings.json, which is JSON with
comments (and trailing commas). There an entry is added or replaced where it stands in the text, so comments, order and
layout stay. What can't be done so is refused.
"""

import json
import os
import re
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from attrs import evolve, frozen

from msp_bridge.errors import ConfigurationError
from msp_bridge.writing import writing_to

PATTERN = re.compile(r"\*\*/\*\.(?:(\w+)|\{([\w,]+)\})")
TOKEN = re.compile(r'\s+|//[^\r\n]*|/\*.*?\*/|"(?:[^"\\\r\n]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"/]+', re.DOTALL)


def write_plugin(editor: str, text: str) -> list[str]:
    """Put what `msp-bridge editors` prints where the editor looks for it. A line for each file: what became of it.

    Raises ConfigurationError.
    """
    if editor in PLUGINS:
        return [_own(PLUGINS[editor](), text)]
    if editor in TOML:
        program, name = TOML[editor]
        return [_tables(editor, _configuration(program) / name, text)]
    if editor in SERVERS:
        file, command = SERVERS[editor]
        return [_server(editor, file(), text, command)]
    return _emacs(text, "msp-bridge" if editor == "emacs" else "msp-bridge-lsp")


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


def _emacs(text: str, name: str) -> list[str]:
    old, new = Path.home() / ".emacs.d", _configuration("emacs")
    home = new if new.is_dir() and not old.is_dir() else old
    init = Path.home() / ".emacs" if (Path.home() / ".emacs").is_file() else home / "init.el"
    plugin = home / f"{name}.el"
    load = f"(load {json.dumps(str(plugin.with_suffix('')), ensure_ascii=False)})"
    done = _own(plugin, text)
    before = _text(init)
    code = re.sub(r"^\s*;.*$", "", before, flags=re.MULTILINE)
    if re.search(rf"{name}(?!-lsp)", code):  # loaded in the user's own way
        return [done, f"nothing to change: {init}"]
    return [done, replaced(init, _appended(before, load + "\n"))]


def _tables(editor: str, file: Path, text: str) -> str:
    """Add tables of TOML to those of `file`, where it says nothing else of the same."""
    before = _text(file)
    after = _appended(before, text)
    try:
        known, added = tomllib.loads(before), tomllib.loads(text)
        if _holds(known, added):
            return f"nothing to change: {file}"
        if _holds(tomllib.loads(after), known) and _languages(known).isdisjoint(_languages(added)):
            return replaced(file, after)
        reason = "it already says something else there"
    except tomllib.TOMLDecodeError as error:
        reason = str(error)
    raise left_alone(file, reason, editor)


def _languages(table: Mapping[str, Any]) -> set[str]:
    """The languages of a languages.toml: each may be there once."""
    return {language.get("name", "") for language in table.get("language", ()) if isinstance(language, dict)}


def _server(editor: str, file: Path, text: str, command: Sequence[str]) -> str:
    """Put a language server into JSON settings. The keys `command` lead to the program that is started.

    Of what is there already only a command that starts a bridge is replaced, and to a list of servers ours is added.
    """
    before = _text(file)
    try:
        known, wanted = parse(before), parse(text)
        started = _at(known, command)
        if started is not None and "msp-bridge" not in json.dumps(started):
            raise ConfigurationError(f"`{'.'.join(command)}` starts another program there")
        setting: Any = _at(wanted, command)
        for key in reversed(command):
            setting = {key: setting}
        after = merged(merged(before, _added(known, wanted)), setting) if before.strip() else text
    except ConfigurationError as error:
        raise left_alone(file, str(error), editor) from None
    return f"nothing to change: {file}" if after == before else replaced(file, after)


def _at(settings: Any, keys: Sequence[str]) -> Any:
    """The value that the keys lead to, None where there is none."""
    for key in keys:
        settings = settings.get(key) if isinstance(settings, dict) else None
    return settings


def _added(known: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Return what `known` lacks of `wanted`; lists of words are joined. Raises ConfigurationError."""
    added = {}
    for key, value in wanted.items():
        there = known.get(key)
        if key not in known:
            added[key] = value
        elif isinstance(value, dict) and isinstance(there, dict):
            added[key] = _added(there, value)
        elif isinstance(value, dict):
            raise ConfigurationError(f"`{key}` is no object there")
        elif key == "language_servers" and isinstance(there, list):
            added[key] = [*there, *(word for word in value if word not in there)]
    return added


def _holds(table: Mapping[str, object], part: Mapping[str, object]) -> bool:
    """Whether `table` says all that `part` says."""
    for key, value in part.items():
        there = table.get(key)
        if isinstance(value, Mapping):
            if not isinstance(there, Mapping) or not _holds(there, value):
                return False
        elif isinstance(value, list) and isinstance(there, list) and any(isinstance(item, dict) for item in value):
            if not all(item in there for item in value):
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
        raise ConfigurationError(f"{file} was left as it is: the bridge didn't write it", "move it, then try again")
    return f"nothing to change: {file}" if before == text else replaced(file, text)


def _text(file: Path) -> str:
    try:
        return file.read_bytes().decode() if file.exists() else ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{file} can't be read: {error}") from None


def _appended(before: str, text: str) -> str:
    newline = "\r\n" if "\r\n" in before else "\n"
    gap = "" if not before else newline if before.endswith("\n") else 2 * newline
    return before + gap + text.replace("\n", newline)


def replaced(file: Path, text: str) -> str:
    """Write `file`, and say so. Links are followed: many keep such files in a repository of their own."""
    with writing_to(file):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())
    return f"written: {file}"


def left_alone(file: Path, reason: str, editor: str) -> ConfigurationError:
    """The error for a file of the user's that was not written to."""
    return ConfigurationError(
        f"{file} was left as it is, for {reason}", f"`msp-bridge editors {editor}` prints what to put into it"
    )


def _sublime() -> Path:
    mac = Path.home() / "Library/Application Support/Sublime Text"
    packages = (mac if sys.platform == "darwin" else _configuration("sublime-text")) / "Packages"
    return packages / "User/LSP.sublime-settings"


PLUGINS: Mapping[str, Callable[[], Path]] = {  # files of our own
    "neovim": lambda: _configuration("nvim") / "plugin/msp-bridge.lua",
    "neovim-lsp": lambda: _configuration("nvim") / "plugin/msp-bridge-lsp.lua",
    "jetbrains-lsp": lambda: _configuration("msp-bridge") / "jetbrains/template.json",  # from where it is imported
    "eclipse-lsp": lambda: _configuration("msp-bridge") / "eclipse/msp-bridge.launch",
    "vim": lambda: Path.home() / ".vim/compiler/mutants.vim",
}
TOML = {"helix": ("helix", "config.toml"), "helix-lsp": ("helix", "languages.toml")}
SERVERS: Mapping[str, tuple[Callable[[], Path], Sequence[str]]] = {  # JSON settings, and the keys of the program there
    "zed-lsp": (lambda: _configuration("zed") / "settings.json", ("lsp", "pylsp", "binary")),
    "sublime-lsp": (_sublime, ("clients", "msp-bridge", "command")),
    "kate-lsp": (lambda: _configuration("kate") / "lspclient/settings.json", ("servers", "python", "command")),
}


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
