"""What `msp-bridge browse` shows on its screen, for tests that press its keys (textual's pilot)."""

import contextlib
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path

from textual.app import App
from textual.pilot import Pilot

from msp_bridge.browse.listing import Filter
from msp_bridge.browse.loading import ResultsOnDisk
from msp_bridge.browse.results_screen import Browser
from msp_bridge.browse.retesting import Retesting
from msp_bridge.workspace.workspace import Workspace

SIZE = (80, 24)  # the smallest terminal that counts
LOOKS = 6_000  # 10 ms apart, until the screen has what is waited for: on a busy machine each takes longer


def screen(app: App[None]) -> str:
    """The lines of the screen, without color."""
    strips = app.screen._compositor.render_strips(app.size)
    return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips)


async def pressed(pilot: Pilot[None], *keys: str) -> None:
    """Press these keys, one after another."""
    for key in keys:
        await pilot.press(key)


async def until(pilot: Pilot[None], condition: Callable[[], bool]) -> None:
    """Let the program work until something is so."""
    for _ in range(LOOKS):
        if condition():
            return
        await pilot.pause(0.01)
    raise AssertionError(f"it never came to that\n{screen(pilot.app)}")


async def shown(pilot: Pilot[None], *texts: str, gone: str | None = None) -> str:
    """The screen, as soon as it has all `texts`, and `gone` no more."""

    def seen() -> bool:
        found = screen(pilot.app)
        return all(text in found for text in texts) and (gone is None or gone not in found)

    await until(pilot, seen)
    return screen(pilot.app)


@contextlib.asynccontextmanager
async def browsing(
    root: Path, filter: Filter | None = None, size: tuple[int, int] = SIZE
) -> AsyncIterator[Pilot[None]]:
    """The program on the kept results of the project at `root`, with the tools that are found there."""
    disk = ResultsOnDisk(root)
    async with contextlib.aclosing(Retesting(root, partial(Workspace.open, root))) as retesting:
        program = Browser(disk, disk.load(), retesting, filter or Filter())
        setattr(program, "NOTIFICATION_TIMEOUT", 600)  # noqa: B010 (a constant) on a busy machine 5 s pass unseen
        async with program.run_test(size=size, notifications=True) as pilot:
            yield pilot
