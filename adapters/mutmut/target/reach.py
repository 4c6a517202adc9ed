"""Reach: which functions each test reaches, and which tests start processes whose reach nobody sees."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from typing import Any

import pytest
from mutmut.mutation.trampoline import set_mutant_under_test
from mutmut.state import state

PROCESS = "<process>"  # noted like a function
FORKS = {"os.fork", "os.forkpty", "os.system"}


class Reach:
    """A pytest plugin. What a fixture of a wider scope reaches counts for every test that uses it.

    mutmut counts it for the first test only: a mutant that breaks what a later test gets from it would survive.
    """

    def __init__(self) -> None:
        self._watching = False
        self._fixtures: dict[int, set[str]] = {}

    def watch(self) -> None:
        """From now on, in this process."""
        self._watching = True
        set_mutant_under_test(
            "stats"
        )  # mutmut's word for a run in which each mutated function tells that it is reached
        state()._stats.clear()
        sys.addaudithook(_note_process)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Generator[None, Any, Any]:
        """Note what a fixture of a wider scope reaches while it is set up."""
        if not self._watching or fixturedef.scope == "function":
            return (yield)
        reached = state()._stats
        before = set(reached)
        reached.clear()
        try:
            return (yield)
        finally:
            self._fixtures.setdefault(id(fixturedef), set()).update(reached)
            reached.update(before)

    def of(self, item: Any) -> set[str]:
        """What `item`, which has just run, reached."""
        reached = set(state()._stats)
        state()._stats.clear()
        info = getattr(item, "_fixtureinfo", None)
        for definitions in info.name2fixturedefs.values() if info is not None else ():
            for definition in definitions:
                reached |= self._fixtures.get(id(definition), set())
        return reached


def _note_process(event: str, arguments: tuple[Any, ...]) -> None:
    """Note processes that may run the project's code: forks, shells, Python, and programs of its environment."""
    if event in FORKS or (event == "subprocess.Popen" and _may_be_python(arguments[0], arguments[1])):
        state()._stats.add(PROCESS)


def _may_be_python(executable: Any, argv: Any) -> bool:
    words = [executable, *argv] if isinstance(argv, (list, tuple)) else [executable, argv]
    names = [os.fsdecode(word) for word in words if isinstance(word, (str, bytes, os.PathLike))]
    own = os.path.dirname(sys.executable)
    return any(
        "python" in os.path.basename(name) or name.startswith(own + os.sep) or name == "-c" for name in names
    ) or any(os.path.exists(os.path.join(own, name)) for name in names[:2] if name and os.sep not in name)
