"""Which directories of a project's tree hold nothing of its sources: version control, environments, caches."""

from __future__ import annotations

VERSION_CONTROL = {".git", ".hg", ".svn", ".bzr", ".jj"}
ENVIRONMENTS = {".venv", "venv", "node_modules", ".tox", ".nox", "__pypackages__", ".eggs"}
CACHES = {"__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis", ".stryker-tmp", ".mutmut-cache"}
IGNORED_DIRS = frozenset(VERSION_CONTROL | ENVIRONMENTS | CACHES)  # names of directories
CACHE_MARKERS = frozenset({"pyvenv.cfg", "CACHEDIR.TAG"})  # a directory with one of these is a venv or a cache
