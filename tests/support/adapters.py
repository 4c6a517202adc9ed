"""An adapter on the project of a test: what it gives, and that it leaves nothing behind."""

import contextlib
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from msp_bridge.adapter import Adapter, Finding, Mutant, Notice, Project, Remark, Result, Scope, UnusableFile
from msp_bridge.errors import BridgeError
from msp_bridge.testing import RunningProcesses, TreeState

A = TypeVar("A", bound=Adapter)


def project_at(root: Path, **about: Any) -> Project:
    """The front end's, with a cache beside the tree."""
    return Project(root=root, **{"cache": root.parent / "cache", **about})


@contextlib.asynccontextmanager
async def detected(adapter_class: type[A], root: Path, *, edited: bool = False, **about: Any) -> AsyncIterator[A]:
    """The adapter that detects the tree. No process may be left, and the tree as it was, if not `edited` by the test."""
    tree, running = TreeState.of(root), RunningProcesses()
    adapter = adapter_class.detect(project_at(root, **about))
    assert adapter is not None
    async with contextlib.aclosing(adapter):
        yield adapter
    assert await running.settled(0) == []
    assert edited or tree.differences(TreeState.of(root)) == []


async def items_of(adapter: Adapter, *paths: str) -> list[Any]:
    """Mutants of `paths`, or of everything, and what is told of them."""
    async with contextlib.aclosing(adapter.discover(Scope(frozenset(paths) or None))) as items:
        return [item async for item in items]


async def discovered(adapter: Adapter, *paths: str) -> list[Mutant]:
    return [item for item in await items_of(adapter, *paths) if isinstance(item, Mutant)]


async def remarks(adapter: Adapter, *paths: str) -> list[str]:
    """What a discovery remarks."""
    return [str(item) for item in await items_of(adapter, *paths) if isinstance(item, Remark)]


async def unusable(adapter: Adapter, *paths: str) -> list[str]:
    """`PATH: PROBLEM` of the files that a discovery can't use."""
    found = await items_of(adapter, *paths)
    return [f"{item.path}: {item.problem}" for item in found if isinstance(item, UnusableFile)]


async def results_of(
    adapter: Adapter,
    mutants: Sequence[Mutant],
    notices: list[Notice] | None = None,
    into: list[Result] | None = None,
) -> list[Result]:
    """All results; `into` has them as they come. `notices` gets what is told beside them, which else must be nothing."""
    results, told = [] if into is None else into, [] if notices is None else notices
    async with contextlib.aclosing(adapter.test(mutants)) as items:
        async for item in items:
            (results if isinstance(item, Result) else told).append(item)
    assert notices is not None or told == [], told
    return results


async def refusal(
    opened: AbstractAsyncContextManager[Adapter], kind: type[BridgeError], match: str | None = None
) -> BridgeError:
    """The error that a discovery ends with."""
    async with opened as adapter:
        with pytest.raises(kind, match=match) as caught:
            await discovered(adapter)
    return caught.value


async def findings_of(adapter: Adapter) -> list[Finding]:
    """What doctor finds."""
    return [finding async for finding in adapter.diagnose()]
