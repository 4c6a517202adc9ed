"""ResultsScreen: the one lasting screen of `msp-bridge browse`, and what its keys do; Browser: the program."""

import asyncio
import os
from collections.abc import Sequence
from typing import ClassVar

from attrs import evolve
from rich.text import Text
from textual.app import App, ComposeResult, SuspendNotSupported
from textual.binding import Binding, BindingType
from textual.containers import Container, VerticalScroll
from textual.screen import Screen
from textual.widgets import Footer, Input, Static, Tree

from msp_bridge.browse.editor import editor_command
from msp_bridge.browse.listing import MISSED, FileResults, Filter, Listing, status_of
from msp_bridge.browse.loading import ResultsOnDisk
from msp_bridge.browse.retesting import Retesting
from msp_bridge.browse.screens import ChangedSource, ChoiceScreen, InputScreen, SourceScreen, TextScreen, detail
from msp_bridge.browse.tree import ResultTree, Row, key_of
from msp_bridge.errors import BridgeError
from msp_bridge.model import Mutant, Result, Status
from msp_bridge.notices import PhaseReport
from msp_bridge.processes.foreground import run_in_foreground
from msp_bridge.reports.kept import LastResult
from msp_bridge.text import counted, one_line, visible
from msp_bridge.workspace.selection import Selection, Target

LOOK_S = 1.0  # between two looks at the disk
SHOW_S = 0.3  # between two times that new results are shown

KEYS = """\
up, down, j, k   move; PgUp, PgDn, g, G: further
n, p             next mutant, mutant before
left, right      close, open a file
Enter, v         the whole source, with the change of the mutant
Tab              to the text of the mutant (arrows scroll), and back

t                test the mutant again; on a file, all of its mutants
f                test every mutant of the file
T                test every mutant that is shown
x                end the test; what it has found is kept
e                open the file at the mutant in $VISUAL or $EDITOR
a                accept the survivor, in mutants-accepted.toml

s                choose which statuses are shown
/                search paths, mutators, code, ids, names of tests
Esc              end the search
y                copy the id of the mutant
q                end
"""


class ResultsScreen(Screen[None]):
    """The tree of results above, or beside, the mutant under the cursor."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("t", "test", "Test"),
        Binding("f", "test_file", "File"),
        Binding("T", "test_shown", show=False),
        Binding("x", "stop", "Stop"),
        Binding("e", "edit", "Edit"),
        Binding("a", "accept", "Accept"),
        Binding("v", "source", "Source"),
        Binding("y", "copy", "Copy"),
        Binding("s", "status", "Status"),
        Binding("slash", "search", "Search", key_display="/"),
        Binding("escape", "end_search", "Clear", key_display="Esc"),
        Binding("question_mark", "help", "Help", key_display="?"),
        Binding("q", "app.quit", "Quit"),
        Binding("ctrl+c", "app.quit", show=False),
    ]

    def __init__(
        self, disk: ResultsOnDisk, results: Sequence[LastResult], retesting: Retesting, filter: Filter
    ) -> None:
        super().__init__()
        self._disk, self._retesting = disk, retesting
        self._listing, self._filter = Listing(results), filter
        self._shown = 0  # mutants
        self._detailed = ""  # the row whose text is shown
        self._fresh: dict[str, LastResult] = {}  # of the test that runs, by id
        self._unshown = False  # whether some of them are not shown yet
        self._loading = False
        self._doing = ""  # what the test does
        self._due = 0  # how many results it will have, as far as is known

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
        self.set_interval(LOOK_S, self._look)
        self.set_interval(SHOW_S, self._show_fresh)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Implement `Screen`: the footer has the keys that can be used now."""
        if action in ("search", "end_search"):
            return self._search.display == (action == "end_search")
        if action in ("test", "test_file", "test_shown", "stop"):
            return self._retesting.running == (action == "stop")
        return True

    @property
    def _search(self) -> Input:
        return self.query_one("#search", Input)

    @property
    def mutant(self) -> LastResult | None:
        """The mutant under the cursor."""
        row = self._row
        return row if isinstance(row, LastResult) else None

    @property
    def _row(self) -> Row | None:
        return self.query_one(ResultTree).row

    def _show(self) -> None:
        files = self._listing.files(self._filter)
        self._shown = sum(len(file.shown) for file in files)
        self.query_one(ResultTree).show_files(files, searched=bool(self._filter.text))
        self._summarize()
        if not files:
            self._show_detail(None)

    def _summarize(self) -> None:
        score, searched = self._listing.score, self._filter.text
        what = (
            f"{self._filter.name}{f', with {searched!r}' if searched else ''}: {self._shown} of {score.counts.total()}"
        )
        testing = f"  testing: {self._doing}" if self._retesting.running else ""
        text = f"{one_line(self._disk.root.name)}  {score.text}  {what}{testing}"
        self.query_one("#summary", Static).update(Text(text))

    def on_tree_node_highlighted(self, event: Tree.NodeHighlighted[Row]) -> None:
        """Show what the cursor is on."""
        self._show_detail(event.node.data)

    def _show_detail(self, row: Row | None) -> None:
        if isinstance(row, LastResult):
            text = detail(self._disk.root, row)
        elif isinstance(row, FileResults):
            counts = row.score.counts
            shown = ", ".join(f"{counts[status]} {status.value}" for status in Status if counts[status])
            text = Text(f"{one_line(row.path)}\n{counted(counts.total(), 'mutant')}: {shown}\n")
        else:
            text = Text("No mutant is shown. s: other statuses; /: another search.")
        self.query_one("#mutant", Static).update(text)
        if key_of(row) != self._detailed:  # else it is the same with a newer result: the user may have scrolled
            self._detailed = key_of(row)
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
        counts = self._listing.score.counts
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
                self._listing = Listing(self._listing.results)
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

    def action_test(self) -> None:
        """Test the mutant again; on a file, all of its mutants."""
        last = self.mutant
        if last is None:
            self.action_test_file()
        elif last.stale:
            self.notify("its lines have changed since: f tests the file", severity="warning")
        else:
            self._test(Selection.of([last.mutant]), 1)

    def action_test_file(self) -> None:
        """Test every mutant that the file has now."""
        if (path := _path(self._row)) is not None:
            known = sum(last.mutant.path == path for last in self._listing.results)
            self._test(Selection((Target(path),)), known)

    def action_test_shown(self) -> None:
        """Test every mutant that is shown, but for stale ones."""
        shown = (last for file in self._listing.files(self._filter) for last in file.shown)
        mutants: list[Mutant] = [last.mutant for last in shown if not last.stale]
        if mutants:
            self._test(Selection.of(mutants), len(mutants))

    def _test(self, selection: Selection, due: int) -> None:
        self._doing, self._due, self._fresh = "starting", due, {}
        self._retesting.start(selection, self)
        self.refresh_bindings()
        self._summarize()

    async def action_stop(self) -> None:
        """End the test."""
        await self._retesting.stop()
        self._summarize()
        self.refresh_bindings()

    def show_phase(self, phase: PhaseReport) -> None:
        """Implement `Watcher`."""
        self._doing = one_line(str(phase))
        if self.is_running:
            self._summarize()

    def show_results(self, results: Sequence[Result]) -> None:
        """Implement `Watcher`."""
        self._fresh |= {last.mutant.id: last for last in self._disk.fresh(results)}
        self._doing = f"{len(self._fresh)} of {max(self._due, len(self._fresh))}"
        self._unshown = True

    def show_end(self, problem: str) -> None:
        """Implement `Watcher`."""
        self._show_fresh()
        self._fresh = {}
        if self.is_running:
            if problem:
                self.app.push_screen(TextScreen("The test has ended with an error", visible(problem)))
            self._reload()

    def _show_fresh(self) -> None:
        if self._unshown and self.is_running:
            self._unshown = False
            self._listing = self._listing.with_results(self._fresh)
            self._show()

    def _look(self) -> None:
        if self._disk.changed():
            self._reload()

    def _reload(self) -> None:
        if not self._loading:  # else what has changed since is found after it
            self._loading = True
            self.run_worker(self._load())

    async def _load(self) -> None:
        try:
            results = await asyncio.to_thread(self._disk.load)
            while self._disk.changed():
                results = await asyncio.to_thread(self._disk.load)
        except BridgeError as error:
            self.notify(str(error), severity="error", markup=False)
            return
        finally:
            self._loading = False
        self._listing = self._listing.followed_by(results).with_results(self._fresh)
        self._show()
        self.refresh_bindings()

    async def action_edit(self) -> None:
        """Open the file at the mutant in the user's editor, which has the terminal meanwhile."""
        if (path := _path(self._row)) is None:
            return
        line = self.mutant.mutant.location.start.line if self.mutant is not None else 1
        try:
            command = editor_command(self._disk.root / path, line, os.environ)
            with self.app.batch_update(), self.app.suspend():  # a test goes on, and nothing is drawn
                await run_in_foreground(command, self._disk.root)
        except (BridgeError, SuspendNotSupported) as error:
            self.notify(str(error), severity="error", markup=False)
        self.refresh(layout=True)

    def action_accept(self) -> None:
        """Ask for a reason, and accept the survivor."""
        last = self.mutant
        if last is None or not status_of(last).undetected:
            self.notify("only a survivor can be accepted", severity="warning")
            return

        def accept(reason: str | None) -> None:
            if reason is None:
                return
            try:
                self._disk.accept(last, reason)
            except BridgeError as error:
                self.notify(str(error), severity="error", markup=False)
            else:
                self._reload()

        self.app.push_screen(InputScreen("Accept: why should no test kill it?", "the reason, in one sentence"), accept)


def _path(row: Row | None) -> str | None:
    """The file of a row."""
    return row.path if isinstance(row, FileResults) else row.mutant.path if row is not None else None


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
