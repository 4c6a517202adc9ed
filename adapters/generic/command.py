"""Command: the words that the user set for a tool, and what stands in the place of their placeholders."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

from attrs import frozen

from msp_bridge.adapter import ConfigurationError

PLACEHOLDER = re.compile(r"\{([a-z]+)(?::([^{}]*))?\}")
LISTS = ("files", "ranges")
SINGLE = ("report", "directory", "jobs", "root")


@frozen
class Command:
    """Groups of words. A group with `{files}` or `{ranges}` is repeated for each of them; `{files:,}` joins them."""

    groups: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, value: Any, where: str) -> Self:
        """From the list that the user wrote, in which a list is a group; raises `ConfigurationError`."""
        if not isinstance(value, list) or not value:
            raise ConfigurationError(f'{where} must be a list of words, such as ["tool", "--report={{report}}"]')
        groups = []
        for part in value:
            words = part if isinstance(part, list) else [part]
            if not words or not all(isinstance(word, str) and word for word in words):
                raise ConfigurationError(f"{where}: {part!r} must be a word, or a list of words that belong together")
            _check(words, where)
            groups.append(tuple(words))
        if PLACEHOLDER.search(groups[0][0]):
            raise ConfigurationError(f"{where} must begin with a program, not with {groups[0][0]}")
        return cls(tuple(groups))

    @property
    def program(self) -> str:
        """The first word."""
        return self.groups[0][0]

    def names(self, placeholder: str) -> bool:
        """Whether `placeholder` stands anywhere in it."""
        return placeholder in {name for group in self.groups for name, _ in _placeholders(group)}

    def words(self, values: Mapping[str, str | Sequence[str]]) -> list[str]:
        """The words with every placeholder replaced by its value: a list for `files` and `ranges`."""
        words: list[str] = []
        for group in self.groups:
            repeated = _repeated(group)
            for item in values[repeated] if repeated else [""]:
                words += [_filled(word, {**values, repeated: item} if repeated else values) for word in group]
        return words


def filled(text: str, values: Mapping[str, str]) -> str:
    """`text` with each `{name}` that has a value replaced."""
    return PLACEHOLDER.sub(lambda match: values.get(match[1], match[0]), text)


def _filled(word: str, values: Mapping[str, str | Sequence[str]]) -> str:
    def value(match: re.Match[str]) -> str:
        found = values[match[1]]
        return found if isinstance(found, str) else (match[2] or "").join(found)

    return PLACEHOLDER.sub(value, word)


def _placeholders(words: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    return ((match[1], match[2]) for word in words for match in PLACEHOLDER.finditer(word))


def _repeated(words: Sequence[str]) -> str | None:
    return next((name for name, separator in _placeholders(words) if name in LISTS and separator is None), None)


def _check(words: Sequence[str], where: str) -> None:
    for name, separator in _placeholders(words):
        if name not in LISTS + SINGLE:
            known = ", ".join(f"{{{known}}}" for known in LISTS + SINGLE)
            raise ConfigurationError(f"{where}: there is no placeholder {{{name}}}; choose from {known}")
        if name in SINGLE and separator is not None:
            raise ConfigurationError(f"{where}: {{{name}}} is one value, which nothing joins: write {{{name}}}")
    if len({name for name, separator in _placeholders(words) if name in LISTS and separator is None}) > 1:
        raise ConfigurationError(f"{where}: {' '.join(words)} can't be repeated for files and ranges: use one of them")
