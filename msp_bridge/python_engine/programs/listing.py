"""Directories are listed for pytest without the files that nobody collects.

pytest asks its plug-ins about each file of the tree. With 20,000 data files beside the tests that takes longer than
everything else, and much longer while what the tests import is traced (`imports`). Left out are files that no plug-in
but pytest's own could collect, and that these don't: no Python, no document with doctests. A project that has a plug-in
that collects other files, or names a file in the arguments, has it collected as ever.
"""

from __future__ import annotations

import fnmatch
import os
import re
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
    globs = session.config.getoption("doctestglob", None) or DOCUMENTS
    is_simple = not any("/" in glob for glob in globs)  # it is names that are matched
    may_be = re.compile("|".join([r".*\.py\Z", *map(fnmatch.translate, globs)])).match

    def listed(path: str, *arguments: Any, **options: Any) -> list[os.DirEntry[str]]:
        entries = scandir(path, *arguments, **options)
        found = session.config.hook.pytest_collect_file.get_hookimpls()  # a conftest.py may bring one at any moment
        if not is_simple or any(each.function.__module__ not in OWN for each in found):
            return list(entries)
        named = session.isinitpath(path, with_parents=True)  # by the arguments, it or what is below
        return [
            entry
            for entry in entries
            if may_be(entry.name) or not entry.is_file() or (named and session.isinitpath(entry.path))
        ]

    vars(_pytest.main)["scandir"] = vars(_pytest.python)["scandir"] = listed
