"""Names of directories that hold nothing of a project's sources: they are in no private copy, snapshot or listing.

The one list of them, for the bridge and for its programs in the project's interpreter.
"""

from __future__ import annotations

VERSION_CONTROL = frozenset({".git", ".hg", ".svn", ".bzr", ".jj"})
ENVIRONMENTS = frozenset({".venv", "venv", "node_modules", ".tox", ".nox", "__pypackages__", ".eggs"})
CACHES = frozenset(
    {"__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis", ".stryker-tmp", ".mutmut-cache"}
)
IGNORED_DIRS = VERSION_CONTROL | ENVIRONMENTS | CACHES
GENERATED = frozenset({"mutants"})  # copies that tools make for themselves; a project's sources may have this name, too
ACCEPTED = "mutants-accepted.toml"  # the file of accepted survivors: no verdict depends on it
CACHE_MARKERS = frozenset({"pyvenv.cfg", "CACHEDIR.TAG"})  # a directory with one of these is a venv or a cache
