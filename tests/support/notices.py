"""What an adapter tells beside its mutants."""

import contextlib

from msp_bridge.adapter import Adapter, Remark, Scope, UnusableFile


async def remarks(adapter: Adapter, *paths: str) -> list[str]:
    """What a discovery of `paths`, or of everything, remarks."""
    async with contextlib.aclosing(adapter.discover(Scope(frozenset(paths) or None))) as found:
        return [str(item) async for item in found if isinstance(item, Remark)]


async def unusable(adapter: Adapter, *paths: str) -> list[str]:
    """`PATH: PROBLEM` of the files that a discovery of `paths`, or of everything, can't use."""
    async with contextlib.aclosing(adapter.discover(Scope(frozenset(paths) or None))) as found:
        return [f"{item.path}: {item.problem}" async for item in found if isinstance(item, UnusableFile)]
