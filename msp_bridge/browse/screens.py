"""Screens above the results: a text, a choice, a line to type, a whole source; and the texts of one mutant."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path
from typing import ClassVar

from attrs import frozen
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.geometry import Size
from textual.screen import ModalScreen, Screen
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import Footer, Input, OptionList, Static
from textual.widgets.option_list import Option

from msp_bridge.reports.kept import LastResult
from msp_bridge.reports.results import lines_of
from msp_bridge.reports.terminal import SIGNS, evidence, missed
from msp_bridge.source import CONTEXT
from msp_bridge.text import visible

STALE = "stale: its lines have changed since; this is the text before"
CLOSE = Binding("escape,q", "app.pop_screen", "Close", key_display="Esc")


@frozen
class SourceLine:
    """A line of a file: removed (`-`), added (`+`) or as it is (a blank)."""

    number: int  # 1-based; an added line has that of the line which it replaces
    sign: str
    text: str

    def styled(self, width: int) -> Text:
        """The line after its number, which takes `width` columns."""
        number = "" if self.sign == "+" else str(self.number)
        style = SIGNS.get(self.sign, "")
        return Text(f"{self.sign} {number:>{width}}  {visible(self.text).expandtabs()}", style=style)


@frozen
class ChangedSource:
    """The whole source of a mutant, with its change: the lines `first` to `end` (0-based, exclusive) are - or +."""

    _before: Sequence[str]
    _after: Sequence[str]
    first: int
    _old_end: int  # of the removed lines, after which the added ones stand
    end: int

    @classmethod
    def of(cls, last: LastResult) -> ChangedSource:
        """The text as it is now, or that of before when the mutant is stale."""
        before = lines_of(last.source.text.removesuffix("\n"))
        try:
            after = lines_of(last.source.apply(last.mutant).removesuffix("\n"))
        except ValueError:  # it is not the text that the mutant was found in
            after = before
        head = _same(before, after)
        tail = _same(before[head:][::-1], after[head:][::-1])
        old_end = len(before) - tail
        return cls(before, after, head, old_end, old_end + len(after) - tail - head)

    def lines(self, context: int | None = None) -> list[SourceLine]:
        """The change with so many lines before and after it; None: with all."""
        count = len(self._before) + self.end - self._old_end
        first, end = (0, count) if context is None else (max(0, self.first - context), min(count, self.end + context))
        return [self._line(at) for at in range(first, end)]

    def _line(self, at: int) -> SourceLine:
        removed, added = self._old_end - self.first, self.end - self._old_end
        if at < self._old_end:
            return SourceLine(at + 1, "-" if at >= self.first else " ", self._before[at])
        if at < self.end:
            return SourceLine(self.first + 1, "+", self._after[at - removed])
        return SourceLine(at - added + 1, " ", self._before[at - added])

    @property
    def number_width(self) -> int:
        """Columns that the numbers take."""
        return len(str(len(self._before)))


def detail(root: Path, last: LastResult) -> Text:
    """The mutant with its place, its change, its tests, and why it has its status."""
    text = missed(root, last.result, None, f"  {last.mutant.id}")
    if last.stale:
        text.append(f"{STALE}\n", style="yellow")
    source = ChangedSource.of(last)
    for line in source.lines(CONTEXT):
        text.append_text(line.styled(source.number_width)).append("\n")
    return text.append_text(evidence(last.result))


def _same(one: Sequence[str], other: Sequence[str]) -> int:
    """How many lines both begin with."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


class TextScreen(ModalScreen[None]):
    """A text, until it is closed."""

    BINDINGS: ClassVar[list[BindingType]] = [CLOSE, Binding("question_mark,enter", "app.pop_screen", show=False)]

    def __init__(self, title: str, text: str) -> None:
        super().__init__()
        self._title, self._text = title, text

    def compose(self) -> ComposeResult:
        """Implement `Screen`."""
        with VerticalScroll(classes="dialog") as dialog:
            dialog.border_title = self._title
            yield Static(Text(self._text))
        yield Footer(compact=True)


class ChoiceScreen(ModalScreen[int | None]):
    """One of several lines; its number is the screen's result, None when it is closed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss(None)", "Close", key_display="Esc"),
        Binding("j", "down", show=False),
        Binding("k", "up", show=False),
    ]

    def __init__(self, title: str, lines: Sequence[str], chosen: int) -> None:
        super().__init__()
        self._title, self._lines, self._chosen = title, lines, chosen

    def compose(self) -> ComposeResult:
        """Implement `Screen`."""
        choice = OptionList(*(Option(Text(line)) for line in self._lines), classes="dialog")
        choice.border_title = self._title
        choice.highlighted = self._chosen
        yield choice
        yield Footer(compact=True)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Close with the line."""
        self.dismiss(event.option_index)

    def action_down(self) -> None:
        """Go to the next line."""
        self.query_one(OptionList).action_cursor_down()

    def action_up(self) -> None:
        """Go to the line before."""
        self.query_one(OptionList).action_cursor_up()


class InputScreen(ModalScreen[str | None]):
    """One line of text; it is the screen's result, None when it is closed."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "Close", key_display="Esc")]

    def __init__(self, title: str, placeholder: str) -> None:
        super().__init__()
        self._title, self._placeholder = title, placeholder

    def compose(self) -> ComposeResult:
        """Implement `Screen`."""
        line = Input(placeholder=self._placeholder, compact=True, classes="dialog")
        line.border_title = self._title
        yield line
        yield Footer(compact=True)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Close with the text."""
        self.dismiss(event.value)


class SourceView(ScrollView, can_focus=True):
    """Lines of source, of which only those are drawn that are seen."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "scroll_down", show=False),
        Binding("k", "scroll_up", show=False),
        Binding("l", "scroll_right", show=False),
        Binding("h", "scroll_left", show=False),
    ]

    def __init__(self, source: ChangedSource) -> None:
        super().__init__()
        self._source = source
        self._lines = [line.styled(source.number_width) for line in source.lines()]
        self.virtual_size = Size(max((line.cell_len for line in self._lines), default=0), len(self._lines))

    def on_mount(self) -> None:
        """Begin at the change."""
        self.call_after_refresh(self.scroll_to, y=max(0, self._source.first - 5), animate=False)

    def render_line(self, y: int) -> Strip:
        """Implement `ScrollView`."""
        left, top = self.scroll_offset
        if top + y >= len(self._lines):
            return Strip.blank(self.size.width, self.rich_style)
        strip = Strip(self._lines[top + y].render(self.app.console), self._lines[top + y].cell_len)
        return strip.crop_extend(left, left + self.size.width, self.rich_style).apply_style(self.rich_style)


class SourceScreen(Screen[None]):
    """The whole file of a mutant, with its change in place."""

    BINDINGS: ClassVar[list[BindingType]] = [CLOSE, Binding("v,enter", "app.pop_screen", show=False)]

    def __init__(self, title: str, source: ChangedSource) -> None:
        super().__init__()
        self._title, self._source = title, source

    def compose(self) -> ComposeResult:
        """Implement `Screen`."""
        yield Static(Text(self._title), classes="heading")
        yield SourceView(self._source)
        yield Footer(compact=True)
