"""Screens above the results: a text, a choice, a line to type, and the whole source of a mutant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

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

from msp_bridge.browse.detail import ChangedSource

CLOSE = Binding("escape,q", "app.pop_screen", "Close", key_display="Esc")


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
