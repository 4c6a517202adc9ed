"""JSON with comments, as editors have it: a change keeps everything else as it was."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st

from msp_bridge.cli.editor_files import merged, parse
from msp_bridge.errors import ConfigurationError

NEW = {"strykerMutator.server.args": ["serve", "stdio"], "strykerMutator.watchPattern": "**/*.py"}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '{\n  "k": 1\n}\n'),
        ("// x\n", '// x\n{\n  "k": 1\n}\n'),
        ("{}", '{\n  "k": 1\n}'),
        ('{"a": 0}', '{"a": 0,\n  "k": 1\n}'),
        ('{\n\t"a": 0\n}\n', '{\n\t"a": 0,\n\t"k": 1\n}\n'),
        ('{\r\n  "a": 0\r\n}\r\n', '{\r\n  "a": 0,\r\n  "k": 1\r\n}\r\n'),
        ('{\n  "a": 0, // b\n}', '{\n  "a": 0, // b\n  "k": 1,\n}'),
        ('{\n  "a": 0 // b\n  /* "k": 2 */\n}', '{\n  "a": 0, // b\n  /* "k": 2 */\n  "k": 1\n}'),
        ('{"k": {"k": [2]}, "a": "// {"}', '{"k": 1, "a": "// {"}'),
        ('{"a": {"k": 2}, "k" /* x */ : "y" // z\n}', '{"a": {"k": 2}, "k" /* x */ : 1 // z\n}'),
    ],
)
def test_a_setting_is_put_where_it_belongs(before: str, after: str) -> None:
    assert merged(before, {"k": 1}) == after
    assert merged(after, {"k": 1}) == after


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
SPACES = st.sampled_from(["", " ", "\n  ", "\r\n\t", " // }, {\n", ' /* ] , "k": */ ', '\n// "\n'])


@st.composite
def commented(draw: st.DrawFn, value: Any) -> str:
    """A JSON text of `value`, with comments and trailing commas in between."""
    space = lambda: draw(SPACES)  # noqa: E731
    match value:
        case dict():
            parts = [f"{json.dumps(key)}{space()}:{space()}{draw(commented(item))}" for key, item in value.items()]
        case list():
            parts = [draw(commented(item)) for item in value]
        case _:
            return json.dumps(value)
    comma = "," if parts and draw(st.booleans()) else ""
    inside = ",".join(f"{space()}{part}{space()}" for part in parts) + comma + space()
    return f"{{{inside}}}" if isinstance(value, dict) else f"[{inside}]"


@effort(deadline=None)
@given(st.data(), st.dictionaries(st.text() | st.sampled_from(sorted(NEW)), VALUES, max_size=4))
def test_any_settings_keep_all_but_what_is_set(data: st.DataObject, known: dict[str, Any]) -> None:
    text = f"{data.draw(SPACES)}{data.draw(commented(known))}{data.draw(SPACES)}"
    assert parse(text) == known
    after = merged(text, NEW)
    assert parse(after) == {**known, **NEW}
    assert merged(after, NEW) == after
    if not NEW.keys() & known.keys():
        kept = iter(after)
        assert all(character in kept for character in text)  # in this order: nothing of it is gone


@effort(deadline=None)
@given(st.text(alphabet='{}[]:,"/*\\ \n1ak'))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        after = merged(text, NEW)
    except ConfigurationError:
        return
    assert parse(after) == {**parse(text), **NEW}
