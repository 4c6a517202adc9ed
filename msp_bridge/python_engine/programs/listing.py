"""Directories are listed for pytest without the files that nobody collects.

pytest asks its plug-ins about each file of the tree. With 20,000 data files beside the tests that takes longer than
everything else, and much longer while what the tests import is traced (`imports`). Left out are files that no plug-in
but pytest's own could collect, and that these don't: no Python, no document with doctests. A project that has a plug-in
that collects other files, or names a file in the arguments, has it collected as ever.
"""

from __future__ import annotations

import fnmatch
import functools
import os
import re
from collections.abc import Callable
from typing import Any

import _pytest.main
import _pytest.python
import pytest

OWN = frozenset({"_pytest.doctest", "_pytest.python"})  # what collects files in pytest itself
DOCUMENTS = ["test*.txt"]  # pytest's default


def leave_out_data(session: Any) -> None:
    """From now on in this process, if this pytest lists directories as is known here."""
    scandir = getattr(_pytest.main, "scandir", None)
    if pytest.version_tuple < (8, 0) or scandir is None or not hasattr(_pytest.python, "scandir"):
        return
    listing = functools.partial(_listed, Collected(session), scandir)
    vars(_pytest.main)["scandir"] = vars(_pytest.python)["scandir"] = listing


class Collected:
    """Tells which files of one session may be collected."""

    def __init__(self, session: Any) -> None:
        self._session = session
        globs = session.config.getoption("doctestglob", None) or DOCUMENTS
        self._is_simple = not any("/" in glob or os.sep in glob for glob in globs)  # it is names that are matched
        self._may_be = re.compile("|".join([r".*\.py\Z", *map(fnmatch.translate, globs)])).match

    def by_others(self) -> bool:
        """Whether a plug-in of others collects files; a conftest.py may bring one at any moment."""
        found = self._session.config.hook.pytest_collect_file.get_hookimpls()
        return not self._is_simple or any(each.function.__module__ not in OWN for each in found)

    def keeps(self, entry: os.DirEntry[str], named: bool) -> bool:
        """`named`: the arguments name something in this directory."""
        if self._may_be(entry.name) or not entry.is_file():
            return True
        return named and bool(self._session.isinitpath(entry.path))

    def names_any_in(self, directory: str | os.PathLike[str]) -> bool:
        """Whether the arguments name it, or what is below."""
        return bool(self._session.isinitpath(directory, with_parents=True))


def _listed(
    collected: Collected, scandir: Callable[..., list[os.DirEntry[str]]], path: str, *arguments: Any, **options: Any
) -> list[os.DirEntry[str]]:
    entries = scandir(path, *arguments, **options)
    if collected.by_others():
        return entries
    named = collected.names_any_in(path)
    return [entry for entry in entries if collected.keeps(entry, named)]
