"""What the tests of the gremlins adapter share: trees, and adapters on them. go and gremlins are the real ones."""

import os
import shutil
import sys
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from msp_bridge.adapters.gremlins import Gremlins

from msp_bridge.adapter import Mutant, Notice, Result
from support import adapters
from support.adapters import detected, items_of
from support.files import written
from support.projects import EXAMPLES, copied

PROGRAMS = os.pathsep.join([os.environ["PATH"], str(Path(sys.executable).parent), "/usr/local/go/bin"])
REAL = all(shutil.which(name, path=PROGRAMS) is not None for name in ("go", "gremlins"))
needs_gremlins = pytest.mark.skipif(not REAL, reason="gremlins is not installed")  # `make test` installs it, beside go


def shop(to: Path) -> Path:
    """The example, copied below `to`, with a file that is no Go where go builds nothing."""
    return written(copied(EXAMPLES / "shop-go", to), {"testdata/broken.go": "this is no Go: a > b\n"})


def adapter_on(root: Path) -> AbstractAsyncContextManager[Gremlins]:
    return detected(Gremlins, root, jobs=2)


async def discovered(adapter: Gremlins, *paths: str) -> tuple[list[Mutant], list[Notice]]:
    found = await items_of(adapter, *paths)
    return [item for item in found if isinstance(item, Mutant)], [item for item in found if isinstance(item, Notice)]


async def results_of(adapter: Gremlins, mutants: Sequence[Mutant]) -> tuple[dict[str, Result], list[Notice]]:
    """Results by "line mutator replacement"."""
    results = await adapters.results_of(adapter, mutants, notices := [])
    assert len(results) == len({result.mutant for result in results})
    return {key(result.mutant): result for result in results}, notices


def key(mutant: Mutant) -> str:
    return f"{mutant.location.start.line} {mutant.mutator} {mutant.replacement.strip()}"
