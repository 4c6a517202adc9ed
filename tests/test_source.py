"""SourceText: the editor's positions and Python's offsets mean the same characters."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msp_bridge import reading
from msp_bridge.model import Location, Mutant, Position
from msp_bridge.source import SourceText, as_discovered, utf16_length

BOM = "\N{ZERO WIDTH NO-BREAK SPACE}"
FAMILY = "👨‍👩‍👧"  # three code points beyond the BMP and two joiners: eight code units
DECOMPOSED = "e\N{COMBINING ACUTE ACCENT}"

texts = st.text(st.one_of(st.sampled_from("ab \t\r\né😀\u0301\u2028\x0b\x0c\x85" + BOM), st.characters()), max_size=60)


def javascript_position(text: str, offset: int) -> Position:
    """What an editor says: the line by its `\\n`s, the column by the length of a JavaScript string."""
    before = text[:offset].split("\n")
    return Position(len(before), len(before[-1].encode("utf-16-le", "surrogatepass")) // 2 + 1)


@given(texts)
def test_every_offset_survives_the_way_there_and_back(text: str) -> None:
    source = SourceText(text)
    for offset in range(len(text) + 1):
        position = source.position(offset)
        assert position == javascript_position(text, offset)
        assert source.offset(position) == offset


@given(texts, st.integers(0, 60), st.integers(0, 60), texts)
def test_a_mutant_replaces_exactly_the_text_in_its_location(text: str, one: int, other: int, replacement: str) -> None:
    start, end = sorted((min(one, len(text)), min(other, len(text))))
    source = SourceText(text)
    location = source.location(start, end)
    assert source.at(location) == text[start:end]
    assert source.apply(Mutant("a", "m", location, replacement)) == text[:start] + replacement + text[end:]


@pytest.mark.parametrize(
    ("text", "find", "line", "column"),
    [
        ("x = 1", "1", 1, 5),
        ("a\n\tx", "x", 2, 2),
        ("'é' + 1", "1", 1, 7),
        (f"'{DECOMPOSED}' + 1", "1", 1, 8),
        ("'😀' + 1", "1", 1, 8),
        ("'\U00010000' + 1", "1", 1, 8),
        (f"'{FAMILY}' + 1", "1", 1, 14),
        ("a\r\nb", "b", 2, 1),
        ("a\r\nb", "\r", 1, 2),
        ("a\rb", "b", 1, 3),
        ("a\u2028b", "b", 1, 3),
        ("a\x0cb\x85c", "c", 1, 5),
        ("\n\n\nx", "x", 4, 1),
    ],
)
def test_columns_count_utf_16_code_units_and_lines_end_at_line_feeds(
    text: str, find: str, line: int, column: int
) -> None:
    source = SourceText(text)
    assert source.position(text.index(find)) == Position(line, column)
    assert source.offset(Position(line, column)) == text.index(find)


@pytest.mark.parametrize(
    ("text", "position", "reason"),
    [
        ("ab\ncd", Position(0, 1), "line 0"),
        ("ab\ncd", Position(3, 1), "line 3"),
        ("ab\ncd", Position(1, 4), "column 4"),
        ("ab\ncd", Position(2, 4), "column 4"),
        ("ab", Position(1, 0), "column 0"),
        ("ab", Position(-1, 1), "line -1"),
        ("a😀b", Position(1, 3), "column 3"),
    ],
)
def test_a_position_that_the_text_has_not_is_refused(text: str, position: Position, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        SourceText(text).offset(position)


def test_a_file_keeps_its_line_ends_and_loses_its_byte_order_mark(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_bytes(b"\xef\xbb\xbfx = 1\r\ny = 2\n")
    source = SourceText.read(file)
    assert source.text == "x = 1\r\ny = 2\n"
    assert source.position(source.text.index("2")) == Position(2, 5)


def test_only_the_first_byte_order_mark_is_one(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text(f"{BOM}x{BOM}", "utf-8")
    assert SourceText.read(file).text == f"x{BOM}"


def test_a_file_in_another_encoding_is_read_in_it(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_bytes("é = 1".encode("latin-1"))
    assert SourceText.read(file, "latin-1").text == "é = 1"
    with pytest.raises(UnicodeDecodeError):
        SourceText.read(file)


@given(texts)
def test_the_length_in_utf_16_is_javascripts(text: str) -> None:
    assert utf16_length(text) == sum(2 if character >= "\U00010000" else 1 for character in text)


def test_locations_work_over_several_lines() -> None:
    source = SourceText("if a:\r\n    😀(b)\r\nelse:\n    c\n")
    location = Location(Position(1, 4), Position(3, 5))
    assert source.at(location) == "a:\r\n    😀(b)\r\nelse"
    assert source.location(source.text.index("a"), source.text.index("else") + 4) == location


def test_mutants_of_a_file_that_has_changed_are_not_as_discovered(tmp_path: Path) -> None:
    (tmp_path / "same.py").write_text("a + 1\n")
    (tmp_path / "edited.py").write_text("a + 1\n")
    place = SourceText("a + 1\n").location(2, 3)
    mutants = [Mutant(path, "m", place, "-") for path in ("same.py", "edited.py", "gone.py")]
    before = reading.digest(tmp_path / "same.py")
    (tmp_path / "edited.py").write_text("a +  1\n")
    assert as_discovered(tmp_path, mutants, lambda mutant: before) == mutants[:1]
