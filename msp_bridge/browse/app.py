"""Browser: the program behind `msp-bridge browse`, with the screen of results, and what its keys do."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import ClassVar

from attrs import evolve
from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, VerticalScroll
from textual.screen import Screen
from textual.widgets import Footer, Input, Static, Tree

from msp_bridge.browse.detail import ChangedSource, detail
from msp_bridge.browse.listing import MISSED, FileResults, Filter, Listing
from msp_bridge.browse.screens import ChoiceScreen, SourceScreen, TextScreen
from msp_bridge.browse.tree import ResultTree, Row
from msp_bridge.model import Status
from msp_bridge.reports.kept import LastResult
from msp_bridge.text import counted, one_line

KEYS = """\
up, down, j, k   move; PgUp, PgDn, g, G: further
n, p             next mutant, mutant before
left, right      close, open a file
Enter, v         the whole source of the mutant, with its change
Tab              to the text of the mutant, and back; the arrows scroll it

s                choose the status of the mutants that are shown
/                search in paths, mutators, code, ids and names of tests
Esc              end the search

y                copy the id of the mutant
q                end
"""


class Browser(App[None]):
    """The program. Its one lasting screen has the results; others open above it."""

    CSS_PATH = "browser.tcss"
    TITLE = "msp-bridge"
    ENABLE_COMMAND_PALETTE = False
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (140, "-wide")]  # noqa: RUF012 (textual's own form)

    def __init__(self, root: Path, listing: Listing, filter: Filter) -> None:
        super().__init__()
        self._results = ResultsScreen(root, listing, filter)

    def get_default_screen(self) -> Screen[None]:
        """Implement `App`."""
        return self._results


class ResultsScreen(Screen[None]):
    """The tree of results above, or beside, the mutant under the cursor."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("v", "source", "Source"),
        Binding("y", "copy", "Copy"),
        Binding("s", "status", "Status"),
        Binding("slash", "search", "Search", key_display="/"),
        Binding("escape", "end_search", "Clear", key_display="Esc"),
        Binding("question_mark", "help", "Help", key_display="?"),
        Binding("q", "app.quit", "Quit"),
        Binding("ctrl+c", "app.quit", show=False),
    ]

    def __init__(self, root: Path, listing: Listing, filter: Filter) -> None:
        super().__init__()
        self._root, self._listing, self._filter = root, listing, filter

    def compose(self) -> ComposeResult:
        """Implement `Screen`."""
        yield Static(id="summary", classes="heading")
        with Container(id="panes"):
            yield ResultTree()
            with VerticalScroll(id="detail"):
                yield Static(id="mutant")
        yield Input(id="search", placeholder="search: a path, a mutator, code, an id, a test", compact=True)
        yield Footer(compact=True)

    def on_mount(self) -> None:
        """Show the results."""
        self._search.display = False
        self.query_one(ResultTree).focus()
        self._show()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Implement `Screen`: the footer has the keys that can be used now."""
        if action in ("search", "end_search"):
            return self._search.display == (action == "end_search")
        return True

    @property
    def _search(self) -> Input:
        return self.query_one("#search", Input)

    @property
    def mutant(self) -> LastResult | None:
        """The mutant under the cursor."""
        row = self.query_one(ResultTree).row
        return row if isinstance(row, LastResult) else None

    def _show(self) -> None:
        files = self._listing.files(self._filter)
        self.query_one(ResultTree).show_files(files, searched=bool(self._filter.text))
        self.query_one("#summary", Static).update(Text(self._summary(sum(len(file.shown) for file in files))))
        if not files:
            self._show_detail(None)

    def _summary(self, shown: int) -> str:
        score, searched = self._listing.score, self._filter.text
        what = f"{self._filter.name}{f', with {searched!r}' if searched else ''}: {shown} of {score.counts.total()}"
        return f"{one_line(self._root.name)}  {score.text}  {what}"

    def on_tree_node_highlighted(self, event: Tree.NodeHighlighted[Row]) -> None:
        """Show what the cursor is on."""
        self._show_detail(event.node.data)

    def _show_detail(self, row: Row | None) -> None:
        if isinstance(row, LastResult):
            text = detail(self._root, row)
        elif isinstance(row, FileResults):
            text = Text(f"{one_line(row.path)}\n{_counts(row.score.counts)}\n")
        else:
            text = Text("No mutant is shown. s: other statuses; /: another search.")
        self.query_one("#mutant", Static).update(text)
        self.query_one("#detail").scroll_home(animate=False)

    def on_tree_node_selected(self, event: Tree.NodeSelected[Row]) -> None:
        """Show the source of the mutant."""
        if isinstance(event.node.data, LastResult):
            self.action_source()

    def action_source(self) -> None:
        """Show the whole source of the mutant."""
        if (last := self.mutant) is not None:
            place = f"{one_line(last.mutant.path)}:{last.mutant.location.start.line}"
            title = f"{last.result.status.value}  {place}  {one_line(last.mutant.mutator)}"
            self.app.push_screen(SourceScreen(title, ChangedSource.of(last)))

    def action_copy(self) -> None:
        """Copy the id of the mutant."""
        if (last := self.mutant) is not None:
            self.app.copy_to_clipboard(last.mutant.id)
            self.notify(f"{last.mutant.id} is copied")

    def action_help(self) -> None:
        """Show the keys."""
        self.app.push_screen(TextScreen("Keys", KEYS))

    def action_status(self) -> None:
        """Let the user choose which statuses are shown."""
        counts = self._listing.counts
        choices = [MISSED, None, *(frozenset([status]) for status in Status if counts[status])]
        lines = [
            f"{Filter(each).name:<14} {sum(counts[status] for status in (Status if each is None else each))}"
            for each in choices
        ]
        chosen = self._filter.statuses
        at = choices.index(chosen) if chosen in choices else 0

        def choose(number: int | None) -> None:
            if number is not None:
                self._filter = evolve(self._filter, statuses=choices[number])
                self._show()

        self.app.push_screen(ChoiceScreen("Show mutants that are", lines, at), choose)

    def action_search(self) -> None:
        """Begin to search."""
        self._search.display = True
        self._search.focus()
        self.refresh_bindings()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Show what has the text, with each key."""
        self._filter = evolve(self._filter, text=event.value)
        self._show()

    def on_input_submitted(self) -> None:
        """Go to what was found."""
        if self._filter.text:
            self.query_one(ResultTree).focus()
        else:
            self.action_end_search()

    def action_end_search(self) -> None:
        """Show all again."""
        self._search.value = ""
        self._search.display = False
        self.query_one(ResultTree).focus()
        self.refresh_bindings()


def _counts(counts: Counter[Status]) -> str:
    shown = ((status, counts[status]) for status in Status if counts[status])
    return f"{counted(counts.total(), 'mutant')}: {', '.join(f'{count} {status.value}' for status, count in shown)}"
