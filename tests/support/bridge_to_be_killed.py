"""A stand-in for the bridge: starts a tool that leaves strays, says `ready`, and waits. Arguments: kind, mark."""

import asyncio
import contextlib
import sys
from pathlib import Path

from msp_bridge.processes import ProcessTree

sys.path.insert(0, str(Path(__file__).parents[1]))  # it is run as a script

from support.strays import tool


async def main(kind: str, mark: str) -> None:
    tree = await ProcessTree.start(tool(kind, mark, "time.sleep(600)"), cwd=Path.cwd(), grace=0.2)
    async with contextlib.aclosing(tree.lines()) as lines:
        print((await anext(lines)).decode(), flush=True)
        await asyncio.sleep(600)


asyncio.run(main(*sys.argv[1:]))
