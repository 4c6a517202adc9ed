"""Which tests are likely to kill a mutant, as long as nobody has measured which tests run its code.

A test is the likelier, the more of this holds: its own text names the mutated function (or its class, for a special
method); its file is named like the mutated one; its file names the function; its file names the mutated module. Of
tests that are equally likely the ones of the nearest folder come first. Only files that name the function or the module
are considered. Of the rows of a parametrized test each further one is less likely.
"""

from __future__ import annotations

import os
import re
from bisect import bisect
from collections.abc import Mapping, Sequence
from functools import lru_cache

from .baseline import file_of, function_of
from .dependencies import outermost

AT_MOST = 1000  # rows of one test that are considered
DEFINITION = re.compile(r"^[ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)", re.MULTILINE)


class LikelyTests:
    """The tests of one collection; `texts` are the texts of their files, by path."""

    def __init__(self, tests: Sequence[str], texts: Mapping[str, str]) -> None:
        self._texts = texts
        self._of_file: dict[str, dict[str, list[int]]] = {}  # to function to its rows
        for test, name in enumerate(tests):
            self._of_file.setdefault(file_of(name), {}).setdefault(function_of(name), []).append(test)
        self.of = lru_cache(64)(self._order)  # the likeliest first, for a mutant in a function of the file `path`

    def _order(self, path: str, function: str) -> list[int]:
        module = os.path.basename(path).removesuffix(".py")
        if module == "__init__":
            module = os.path.basename(os.path.dirname(path))
        *around, name = (outermost(function) or module).split(".")
        if name.startswith("__") and around:
            name = around[-1]
        found: list[tuple[int, int, int]] = []
        for file, functions in self._of_file.items():
            text = self._texts.get(file, "")
            naming, is_named = _definitions_with(name, text), module in _words(os.path.basename(file))
            if not naming and not is_named and module not in text:
                continue
            near = len(os.path.commonpath(["/" + file, "/" + path]))
            for function_id, tests in functions.items():
                own = re.split(r"\W", function_id.rpartition("::")[2], maxsplit=1)[0] in naming
                score = 4 * own + 2 * is_named + bool(naming)
                found += [(row.bit_length() - score, -near, test) for row, test in enumerate(tests[:AT_MOST])]
        return [test for _, _, test in sorted(found)]


def _definitions_with(name: str, text: str) -> set[str]:
    """The names of the functions and classes in whose text `name` stands."""
    places = [match.start() for match in re.finditer(rf"\b{re.escape(name)}\b", text)]
    if not places:
        return set()
    definitions = [(match.start(), match[1]) for match in DEFINITION.finditer(text)]
    before = (bisect(definitions, (place, "\U0010ffff")) for place in places)
    return {definitions[index - 1][1] if index else "" for index in before}


def _words(file: str) -> set[str]:
    """The names that the name of a test file may stand for: `test_graph.py` for `graph`."""
    stem = file.removesuffix(".py")
    return {stem, stem.removeprefix("test_"), stem.removesuffix("_test"), stem.removeprefix("test")}
