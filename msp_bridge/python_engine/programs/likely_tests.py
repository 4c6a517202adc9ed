"""Which tests are likely to kill a mutant, as long as nobody has measured which tests run its code.

A test is the likelier, the more of this holds: its own text names the mutated function (or its class, for a special
method); its file is named like the mutated one; its file names the function; its file names the mutated module. Of
tests that are equally likely the ones of the nearest folder come first. Only files that name the function or the module
are considered.
"""

from __future__ import annotations

import os
import re
from bisect import bisect
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache

from .baseline import file_of
from .dependencies import outermost

AT_ONCE = 100  # tests that are measured in one job
DEFINITION = re.compile(r"^[ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)", re.MULTILINE)


class LikelyTests:
    """The tests of one collection; `texts` are the texts of their files, by path."""

    def __init__(self, tests: Sequence[str], texts: Mapping[str, str]) -> None:
        self._tests, self._texts = tests, texts
        self._of_file: dict[str, list[int]] = {}
        for test, name in enumerate(tests):
            self._of_file.setdefault(file_of(name), []).append(test)
        self._ordered = lru_cache(64)(self._order)

    def next(self, path: str, function: str, left_out: Collection[int]) -> list[int]:
        """The likeliest tests for a mutant in a function of the file `path`, without left-out tests."""
        return [test for test in self._ordered(path, function) if test not in left_out][:AT_ONCE]

    def _order(self, path: str, function: str) -> list[int]:
        module = os.path.basename(path).removesuffix(".py")
        if module == "__init__":
            module = os.path.basename(os.path.dirname(path))
        *around, name = (outermost(function) or module).split(".")
        if name.startswith("__") and around:
            name = around[-1]
        found: list[tuple[int, int, int]] = []
        for file, tests in self._of_file.items():
            text = self._texts.get(file, "")
            naming, is_named = _definitions_with(name, text), module in _words(os.path.basename(file))
            if not naming and not is_named and module not in text:
                continue
            near = len(os.path.commonpath(["/" + file, "/" + path]))
            for test in tests:
                own = re.split(r"\W", self._tests[test].rpartition("::")[2], maxsplit=1)[0] in naming
                score = 4 * own + 2 * is_named + bool(naming)
                found.append((-score, -near, test))
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
