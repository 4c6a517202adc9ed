"""Browser: the program behind `msp-bridge browse`."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import App
from textual.screen import Screen

from msp_bridge.browse.listing import Filter
from msp_bridge.browse.loading import ResultsOnDisk
from msp_bridge.browse.results_screen import ResultsScreen
from msp_bridge.browse.retesting import Retesting
from msp_bridge.reports.kept import LastResult


class Browser(App[None]):
    """The program. Its one lasting screen has the results; others open above it."""

    CSS_PATH = "browser.tcss"
    TITLE = "msp-bridge"
    ENABLE_COMMAND_PALETTE = False
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (140, "-wide")]  # noqa: RUF012 (textual's own form)

    def __init__(
        self, disk: ResultsOnDisk, results: Sequence[LastResult], retesting: Retesting, filter: Filter
    ) -> None:
        super().__init__()
        self._results = ResultsScreen(disk, results, retesting, filter)

    def get_default_screen(self) -> Screen[None]:
        """Implement `App`."""
        return self._results
