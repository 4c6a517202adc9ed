"""ResultTree: files with their scores, the worst first, and below each its mutants by status."""

from collections.abc import Sequence
from typing import ClassVar, TypeAlias

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.widgets import Tree
from textual.widgets.tree import TreeNode

from msp_bridge.browse.listing import FileResults, status_of
from msp_bridge.reports.kept import LastResult
from msp_bridge.reports.terminal import COLOURS
from msp_bridge.text import one_line

Row: TypeAlias = FileResults | LastResult
STATUS_WIDTH = 14
MAX_OPENED = 300  # mutants that a search shows without a key; with more, files stay closed


class ResultTree(Tree[Row]):
    """Mutants are added when their file is opened: a report may have many thousands."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "cursor_down", show=False),
        Binding("k", "cursor_up", show=False),
        Binding("right,l", "open", show=False),
        Binding("left,h", "close", show=False),
        Binding("n", "next_mutant(1)", show=False),
        Binding("p", "next_mutant(-1)", show=False),
        Binding("g", "scroll_home", show=False),
        Binding("G", "scroll_end", show=False),
    ]

    def __init__(self) -> None:
        super().__init__("")
        self.show_root = False
        self.guide_depth = 2
        self._opened: set[str] = set()  # paths

    @property
    def row(self) -> Row | None:
        """The row under the cursor."""
        return None if self.cursor_node is None else self.cursor_node.data

    def show_files(self, files: Sequence[FileResults], *, searched: bool = False) -> None:
        """Show `files` in place of what is shown; the cursor stays on its row, or goes to the one in its place."""
        before, line, opened = self.row, self.cursor_line, self._opened
        if searched and sum(len(file.shown) for file in files) <= MAX_OPENED:
            opened = {file.path for file in files}
        elif before is None and files:
            opened = self._opened = {files[0].path}
        self.clear()
        for file in files:
            node = self.root.add(_file_label(file), file)
            if file.path in opened:
                self._fill(node, file)
                node.expand()
        lines = self.last_line + 1  # which gives each node its line
        rows = (row for file in self.root.children for row in (file, *file.children))
        same = next((row for row in rows if before is not None and key_of(row.data) == key_of(before)), None)
        if same is not None:
            self.move_cursor(same)
        elif lines:
            self.move_cursor_to_line(min(max(line, 0), lines - 1) if before is not None else min(1, lines - 1))
        if self.cursor_node is not None:
            self.post_message(self.NodeHighlighted(self.cursor_node))

    def on_tree_node_expanded(self, event: Tree.NodeExpanded[Row]) -> None:
        """Add the file's mutants."""
        if isinstance(event.node.data, FileResults):
            self._opened.add(event.node.data.path)
            self._fill(event.node, event.node.data)

    def on_tree_node_collapsed(self, event: Tree.NodeCollapsed[Row]) -> None:
        """Note that the file is closed."""
        if isinstance(event.node.data, FileResults):
            self._opened.discard(event.node.data.path)

    def action_open(self) -> None:
        """Open the file under the cursor."""
        node = self.cursor_node
        if node is not None and isinstance(node.data, FileResults):
            node.expand()
            self._fill(node, node.data)

    def action_close(self) -> None:
        """Close the file of the row under the cursor."""
        node = self.cursor_node
        file = node if node is None or node.allow_expand else node.parent
        if file is not None:
            file.collapse()
            self.move_cursor(file)

    def action_next_mutant(self, by: int) -> None:
        """Go to the next mutant (1), or to the one before (-1); a closed file on the way is opened."""
        if by > 0:
            self.action_open()
        line = self.cursor_line + by
        while 0 <= line <= self.last_line:
            node = self.get_node_at_line(line)
            assert node is not None
            if not node.allow_expand:
                self.move_cursor(node)
                return
            if isinstance(node.data, FileResults) and not node.is_expanded:
                node.expand()
                self._fill(node, node.data)
                line += len(node.data.shown) + 1 if by < 0 else 0
            line += by

    def get_label_width(self, node: TreeNode[Row]) -> int:
        """Implement `Tree`: cheaper than to render the label of each line."""
        return node.label.cell_len + len(self.ICON_NODE) if isinstance(node.label, Text) else len(node.label)

    def _fill(self, node: TreeNode[Row], file: FileResults) -> None:
        if not node.children:
            for last in file.shown:
                node.add_leaf(_mutant_label(last), last)


def key_of(row: Row | None) -> str:
    """The id of the mutant, or the path of the file."""
    return row.mutant.id if isinstance(row, LastResult) else row.path if row is not None else ""


def _file_label(file: FileResults) -> Text:
    score = file.score
    missed = f"{score.undetected} of {score.counts.total()} missed"
    return Text(f"{score.text:>7}  {missed:<18}  {one_line(file.path)}")


def _mutant_label(last: LastResult) -> Text:
    status, start = status_of(last), last.mutant.location.start
    text = Text(f"{status.value:<{STATUS_WIDTH}}", style=COLOURS[status])
    change = f"{one_line(last.mutant.mutator)}  {last.entry.replacement}".rstrip()
    return text.append(f"{'stale  ' * last.stale}{start!s:<8} {one_line(change)}", style="not bold")
