"""What `msp-bridge browse` shows on its screen, for tests that press its keys (textual's pilot)."""

from __future__ import annotations

from textual.app import App
from textual.pilot import Pilot

SIZE = (80, 24)  # the smallest terminal that counts
LOOKS = 2000  # 10 ms apart, until the screen has what is waited for


def screen(app: App[None]) -> str:
    """The lines of the screen, without color."""
    strips = app.screen._compositor.render_strips(app.size)
    return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips)


async def pressed(pilot: Pilot[None], *keys: str) -> None:
    """Press these keys, one after another."""
    for key in keys:
        await pilot.press(key)


async def shown(pilot: Pilot[None], *texts: str, gone: str | None = None) -> str:
    """The screen, as soon as it has all `texts`, and `gone` no more."""
    for _ in range(LOOKS):
        if all(text in (found := screen(pilot.app)) for text in texts) and (gone is None or gone not in found):
            return found
        await pilot.pause(0.01)
    raise AssertionError(f"not on the screen: {texts}\n{found}")
