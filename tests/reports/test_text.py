"""No control character and no lone surrogate of a project reaches a terminal or an encoder."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msp_bridge.text import encodable, one_line, visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J\x07", "\\x1b[2J\\x07"),
        ("a\tb\nc", "a\tb\nc"),
        ("\r", "\\x0d"),
        ("\u202e\u2066", "\\u202e\\u2066"),
        ("caf\udce9", "caf\\udce9"),
        ("café 🙂", "café 🙂"),
    ],
)
def test_what_a_terminal_would_execute_is_escaped(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_a_name_stays_on_its_line() -> None:
    assert one_line("a\nb\tc") == "a\\nb\\tc"


@given(st.text(st.characters(codec=None, exclude_categories=())))
def test_whatever_is_shown_can_be_encoded(text: str) -> None:
    encodable(text).encode()
    shown = visible(text)
    shown.encode()
    assert not any(ord(character) < 32 and character not in "\t\n" for character in shown)
