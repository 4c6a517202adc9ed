"""Compiled bytecode: read where it lies, written to the cache alone.

Theory of operation
-------------------
Nothing may be written beside the user's sources, so `sys.pycache_prefix` is a directory of ours. But Python then
doesn't read there either: the first start would compile the standard library, pytest and all that the project needs
anew, which takes several times as long as the imports. So a file beside its source is used if it is up to date: then
nobody writes to it. All other bytecode is read from the cache and written there.

The variable `VARIABLE` names the directory, and not `PYTHONPYCACHEPREFIX`: what is imported before this module (by
`site` and by `__main__`) would be compiled, and in each process that tests start, all that it imports. These, and the
start, read what lies beside the sources and write nothing (`PYTHONDONTWRITEBYTECODE`).

Bytecode is known to be of a source by the source's size, and its time in whole seconds. Of two versions that were saved
in the same second, the second one would be tested with the code of the first. So a source that was saved just now has
no bytecode, neither read nor written. Nor has one that holds a mutant (`MUTATED`): its test may import it when it is
no longer young, and another mutant may have the same size and time. A process with a guard would be ended by writing
it (`write_none`): a source that was young when its server imported it has no bytecode there.

Tests that import something may have replaced `open` or `os.stat`, and count the calls: here, these are as they were
when this was imported, as is the clock.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable
from io import FileIO
from os import fspath, stat
from os.path import join, split
from pathlib import Path
from types import ModuleType
from typing import Any

from .own_clock import Clock

VARIABLE = "MSP_BRIDGE_BYTECODE"
HEADER = 16  # bytes; PEP 552
BY_TIME, UNCHECKED, BY_HASH = 0, 1, 3  # the flags in the header
MUTATED: set[str] = set()  # names of the files that hold a mutant in this process
YOUNG_S = 2.0  # no file system in use has a coarser clock (FAT)
NOWHERE = Path(os.devnull, "bytecode")  # pytest goes without bytecode where it can't make the directory
_writes = True


def read_beside_sources() -> None:
    """Serve the imports of this process, and of its forks."""
    from importlib import _bootstrap_external

    sys.pycache_prefix = os.environ.pop(VARIABLE, None)
    if sys.pycache_prefix is None:
        return
    sys.dont_write_bytecode = False
    if sys.flags.optimize:
        return
    in_cache = _bootstrap_external.cache_from_source
    ending = f".{sys.implementation.cache_tag}.pyc"

    def cache_from_source(path: Any, *rest: Any, **options: Any) -> Any:
        if not rest and not options:
            if is_young(path):
                raise NotImplementedError  # as where there is no bytecode at all
            folder, name = split(fspath(path))
            beside = join(folder, "__pycache__", name.rpartition(".")[0] + ending)
            if is_current(beside, path):
                return beside
            if not _writes and not is_current(in_cache(path), path):
                raise NotImplementedError
        return in_cache(path, *rest, **options)

    _bootstrap_external.cache_from_source = cache_from_source


def read_beside_plugins(rewrite: ModuleType) -> None:
    """The same for the modules that pytest rewrites the assertions of: itself, its plug-ins, and the tests."""
    in_cache: Callable[[Path], Path] | None = getattr(rewrite, "get_cache_dir", None)
    ending: str | None = getattr(rewrite, "PYC_TAIL", None)
    if in_cache is None or ending is None or sys.pycache_prefix is None:
        return

    def get_cache_dir(file: Path) -> Path:
        if is_young(file):
            return NOWHERE
        places = [file.parent / "__pycache__", in_cache(file)]
        current = (place for place in places if is_current(str(place / f"{file.stem}{ending}"), file))
        return next(current, places[-1] if _writes else NOWHERE)

    rewrite.get_cache_dir = get_cache_dir  # type: ignore[attr-defined]


def write_none() -> None:
    """From now on, this process reads what is current and writes nothing."""
    global _writes
    _writes = False


def is_young(source: str | os.PathLike[str]) -> bool:
    """Whether the time of the file could be that of another version, too: it was saved lately, or holds a mutant."""
    try:
        return fspath(source) in MUTATED or Clock.time() - stat(source).st_mtime < YOUNG_S
    except OSError:
        return False


def is_current(compiled: str, source: str | os.PathLike[str]) -> bool:
    """Whether `compiled` is bytecode of this Python and of what `source` holds now."""
    try:
        with FileIO(compiled) as file:
            header = file.read(HEADER)
        if len(header) < HEADER or header[:4] != importlib.util.MAGIC_NUMBER:
            return False
        flags = int.from_bytes(header[4:8], "little")
        if flags == BY_TIME:
            status = stat(source)
            facts = (int(status.st_mtime) & 0xFFFFFFFF, status.st_size & 0xFFFFFFFF)
            return facts == (int.from_bytes(header[8:12], "little"), int.from_bytes(header[12:16], "little"))
        if flags == BY_HASH:
            return importlib.util.source_hash(Path(source).read_bytes()) == header[8:16]
        return flags == UNCHECKED
    except OSError:
        return False
