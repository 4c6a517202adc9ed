"""Patterns: which `-m` make Stryker.NET test the mutants that were selected, and list all without testing any."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from msp_bridge.adapter import Mutant

from .assumptions import ANY_CHARACTER, EVERYTHING, NOTHING
from .configuration import Configuration, has_spans

SPECIAL = re.compile(r"[*?\[\]{}]")
LONGEST = 16_000  # characters in one pattern: an operating system takes no arguments of any length
MOST = 500_000  # characters in all of them


def discovering(configuration: Configuration | None) -> list[str]:
    """Lists every mutant that the configuration doesn't exclude as a file, and tests none."""
    included = configuration.included if configuration else ()
    excluded = configuration.excluded if configuration else ()
    return [
        *(f"{pattern}{NOTHING}" for pattern in included or (EVERYTHING,)),
        *(pattern for pattern in excluded if not has_spans(pattern)),
    ]


def testing(
    selected: Iterable[Mutant], known: Mapping[str, int], copy: Path, configuration: Configuration | None
) -> list[str]:
    """Takes the mutants in `selected`, and those nested in them. `known` is how many mutants each file has."""
    by_path: dict[str, list[Mutant]] = {}
    for mutant in selected:
        by_path.setdefault(mutant.path, []).append(mutant)
    whole = {path: [_glob(copy, path)] for path in by_path}
    exact = {
        path: whole[path] if len(mutants) == known.get(path) else _spanned(whole[path][0], mutants)
        for path, mutants in by_path.items()
    }
    chosen = exact if sum(len(word) for words in exact.values() for word in words) < MOST else whole
    return [*(word for words in chosen.values() for word in words), *(configuration.excluded if configuration else ())]


def _glob(copy: Path, path: str) -> str:
    """Matches the file's absolute path in the copy, also where a directory above it is reached through a link."""
    return f"**/{SPECIAL.sub(ANY_CHARACTER, f'{copy.parent.name}/{copy.name}/{path}')}"


def _spanned(glob: str, mutants: Sequence[Mutant]) -> list[str]:
    words = [glob]
    for start, end in _merged(sorted(_span(mutant) for mutant in mutants)):
        if len(words[-1]) > LONGEST:
            words.append(glob)
        words[-1] += f"{{{start}..{end}}}"
    return words


def handle(base: str, start: int, end: int) -> str:
    """What we remember of a mutant: the directory of its base, and its offsets as .NET counts them."""
    return f"{base}:{start}..{max(end, start + 1)}"  # an empty span would take nothing


def base_of(mutant: Mutant) -> str:
    """The directory of its base."""
    return mutant.handle.rpartition(":")[0]


def _span(mutant: Mutant) -> tuple[int, int]:
    start, _, end = mutant.handle.rpartition(":")[2].partition("..")
    return int(start), int(end)


def _merged(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Those that touch as one: Stryker.NET does the same, in a time that grows with the cube of their number."""
    merged: list[tuple[int, int]] = []
    for start, end in spans:
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
