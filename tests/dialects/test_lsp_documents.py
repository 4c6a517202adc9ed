"""Texts that a client edits: positions in each encoding, and which lines a change leaves alone."""

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.lsp_client import LspClient
from support.memory_stream import MemoryStream

from msp_bridge.dialects.dialect import path_of
from msp_bridge.dialects.lsp import publisher as publisher_module
from msp_bridge.dialects.lsp import types as lsp
from msp_bridge.dialects.lsp.commands import symbols
from msp_bridge.dialects.lsp.documents import Document, Units
from msp_bridge.dialects.lsp.editor import Editor
from msp_bridge.dialects.lsp.findings import FileFindings
from msp_bridge.dialects.lsp.folders import Folder, Folders
from msp_bridge.dialects.lsp.publisher import FEW, SLICE, Publisher
from msp_bridge.jsonrpc.connection import Connection
from msp_bridge.jsonrpc.streams import MessageStream
from msp_bridge.model import Location, Mutant, Position, Result, Status
from msp_bridge.session import Session
from msp_bridge.source import Changed, Hunk, SourceText, last_line
from msp_bridge.workspace.configuration import Configuration
from msp_bridge.workspace.open_workspaces import OpenWorkspaces

TEXTS = st.text(alphabet="ab\n€𝄞\r", max_size=30)
ENCODINGS = st.sampled_from(["utf-8", "utf-16", "utf-32"])


def line(number: int, last: int | None = None) -> Location:
    return Location(Position(number, 1), Position(last or number, 2))


@given(TEXTS, ENCODINGS, st.data())
def test_a_place_is_the_same_on_its_way_to_the_wire_and_back(text: str, encoding: str, data: st.DataObject) -> None:
    source, units = SourceText(text), Units(encoding)
    offset = data.draw(st.integers(0, len(text)))
    if text[offset : offset + 1] == "\n" and text[offset - 1 : offset] == "\r":
        offset -= 1  # between the two characters of a line end there is no place in LSP
    position = source.position(offset)
    wire = units.range(source, Location(position, position))["start"]
    place = lsp.Position(**wire)
    assert units.offset(source, place) == offset
    assert units.model(source, place) == position


@pytest.mark.parametrize(("place", "offset"), [((0, 99), 2), ((1, 99), 4), ((2, 5), 6), ((7, 0), 6)])
def test_what_lies_behind_an_end_is_the_end(place: tuple[int, int], offset: int) -> None:
    assert Units().offset(SourceText("ab\nc\r\n"), lsp.Position(*place)) == offset


@given(TEXTS, TEXTS)
def test_lines_that_did_not_change_are_found_where_they_are(before: str, after: str) -> None:
    changed, old, new = Changed.between(before, after), before.split("\n"), after.split("\n")
    for number in range(1, len(old) + 1):
        moved = changed.moved(line(number))
        if moved is not None:
            assert new[moved.start.line - 1] == old[number - 1]
    kept = sum(changed.moved(line(number)) is not None for number in range(1, len(old) + 1))
    assert kept + sum(hunk.end - hunk.start for hunk in changed.hunks) == len(old)
    touched = {at for hunk in changed.hunks for at in range(hunk.new_start, hunk.new_end)}
    assert changed.line_numbers <= set(range(1, len(new) + 2))
    assert len(new) - len(touched) == kept


def test_lines_that_are_often_there_are_no_change() -> None:
    same = ["same"] * 300
    changed = Changed.between("\n".join(["a", *same, "b"]), "\n".join(["A", "new", *same, "B"]))
    assert changed.hunks == (Hunk(0, 1, 0, 2), Hunk(301, 302, 302, 303))
    assert changed.moved_lines([1, 2, 301, 302]) == {3, 302}


def test_an_empty_place_at_the_start_of_a_line_is_in_that_line() -> None:
    assert last_line(Location(Position(3, 1), Position(3, 1))) == 3
    assert last_line(Location(Position(2, 5), Position(3, 1))) == 2


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=8), st.lists(st.sampled_from("abc"), max_size=8))
def test_what_spans_a_change_is_gone(old: list[str], new: list[str]) -> None:
    changed = Changed.between("\n".join(old), "\n".join(new))
    for first in range(1, len(old) + 1):
        for last in range(first, len(old) + 1):
            moved = changed.moved(line(first, last))
            if moved is not None:
                assert new[moved.start.line - 1 : moved.end.line] == old[first - 1 : last]


@given(TEXTS, st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9), st.integers(0, 5), st.integers(0, 9), TEXTS)))
def test_any_changes_in_any_order_leave_a_text(text: str, edits: list[tuple[int, int, int, int, str]]) -> None:
    document = Document("file:///a", "a", SourceText(text))
    changes = [lsp.ContentChange(new, lsp.Range(lsp.Position(a, b), lsp.Position(c, d))) for a, b, c, d, new in edits]
    changed = document.change(changes, Units())
    expected = text
    for a, b, c, d, new in edits:  # an end before its start is taken for the start
        source = SourceText(expected)
        start, end = Units().offset(source, lsp.Position(a, b)), Units().offset(source, lsp.Position(c, d))
        expected = expected[:start] + new + expected[max(start, end) :]
    assert document.source.text == expected
    assert changed.hunks == Changed.between(text, document.source.text).hunks
    document.change([lsp.ContentChange("whole")], Units())
    assert document.source.text == "whole"


@given(st.lists(TEXTS, min_size=2, max_size=6), st.data())
def test_a_save_tests_every_line_that_was_touched(texts: list[str], data: st.DataObject) -> None:
    """Whatever was saved, cancelled and tested in between, lines that are not due are those of the tested text."""
    document, tested = Document.opened("file:///a", "a", SourceText(texts[0]), 1, SourceText(texts[1])), texts[1]
    for text in texts[2:]:
        document.change([lsp.ContentChange(text)], Units())
        begun = data.draw(st.sampled_from(["nothing", "a save", "a test"]))
        if begun != "nothing":
            document.begin_test()
        if begun == "a test":
            document.end_test()
            tested = text
    due = {at for lines in document.begin_test() for at in range(lines.start.line, lines.end.line)}
    rest = iter(tested.split("\n"))
    lines = document.source.text.split("\n")
    assert all(line in rest for number, line in enumerate(lines, 1) if number not in due)  # in the same order
    document.end_test()
    assert document.begin_test() == []


def test_findings_say_what_was_changed_and_by_whom_it_was_seen() -> None:
    mutant = Mutant("a.py", "m", Location(Position(1, 1), Position(1, 6)), "a - b\nc")
    findings = FileFindings()
    results = [Result(mutant, Status.SURVIVED, covered_by=("t1", "t2", "t3"))]
    findings.take(results, SourceText("a + b\n"), Changed(()))
    (diagnostic,) = findings.diagnostics(Units(), None, "mutmut")
    assert diagnostic["message"] == 'Survived: "a + b" -> "a - b …"; 3 tests ran through it'
    assert findings.summary() == "1 mutant: 1 survived"
    hover = findings.hover(Location(Position(1, 2), Position(1, 3)), SourceText("a + b\n"), Units())
    assert hover is not None
    assert "-a + b\n+a - b\n" in hover["contents"]["value"]


def test_a_finding_at_import_names_no_number_of_tests() -> None:
    mutant = Mutant("a.py", "number", Location(Position(1, 5), Position(1, 6)), "2")
    findings = FileFindings()
    findings.take([Result(mutant, Status.SURVIVED, static=True)], SourceText("X = 1\n"), Changed(()))
    (diagnostic,) = findings.diagnostics(Units(), None, "mutmut")
    assert diagnostic["message"] == 'Survived: "1" -> "2"; it runs at import'


def test_functions_are_found_in_what_can_be_parsed() -> None:
    text = "class A:\n    @x\n    def f(self):\n        pass\n"
    assert symbols("a.py", SourceText(text)) == [
        ("A", Location(Position(1, 1), Position(5, 1))),
        ("f", Location(Position(3, 1), Position(5, 1))),
    ]
    assert symbols("a.py", SourceText("def f(")) == symbols("a.js", SourceText(text)) == ()


def test_functions_are_found_in_several_threads_at_once() -> None:
    """What the garbage collector calls lets another thread run in the middle of a parse."""
    text = "\n".join(f"def f{number}(a):\n    return {{a: [a + {number}]}}\n" for number in range(500))

    class Cycle:
        def __init__(self) -> None:
            self.itself = self

        def __del__(self) -> None:
            time.sleep(0)

    def parse(depth: int) -> int:
        Cycle()
        return parse(depth - 1) if depth else len(symbols.__wrapped__("a.py", SourceText(text)))

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(parse, [1, 9, 18, 27] * 10)) == {500}


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///a%20b/%C3%A9.py", "/a b/é.py"),
        ("file://localhost/a.py", "/a.py"),
        ("file://elsewhere/a.py", None),
        ("file://[/a.py", None),
        ("file:///a%00b", None),
        ("untitled:1", None),
        ("", None),
    ],
)
def test_only_files_have_paths(uri: str, path: str | None) -> None:
    assert path_of(uri) == path


LINES = st.lists(st.sampled_from(["a", "b", "c"]), max_size=8).map("\n".join)
SPANS = st.lists(st.tuples(st.integers(1, 8), st.integers(0, 3)), max_size=12, unique=True)


@given(LINES, st.lists(LINES, max_size=3), SPANS)
def test_findings_move_as_their_lines_do_and_go_when_one_changes(
    text: str, later: list[str], spans: list[tuple[int, int]]
) -> None:
    findings, expected = FileFindings(), {line(first, first + more) for first, more in spans}
    mutants = [Mutant("a.py", "m", place, "x") for place in expected]
    findings.take([Result(mutant, Status.SURVIVED) for mutant in mutants], SourceText(text), Changed(()))
    for after in later:
        changed, text = Changed.between(text, after), after
        findings.move(changed)
        expected = {now for place in expected if (now := changed.moved(place)) is not None}
    everything = Location(Position(1, 1), Position(100, 1))
    assert {found.result.mutant.location for found in findings.within(everything)} == expected
    for place in expected:
        assert {found.result.mutant.location for found in findings.within(place)} == {
            other for other in expected if other.touches(place)
        }


class TestTenThousandDiagnostics:
    COUNT = 10_000

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Folder:
        (tmp_path / "a.py").write_text("x\n" * self.COUNT)
        folder = Folder(tmp_path, Session(OpenWorkspaces(tmp_path, Configuration())))
        mutants = [Mutant("a.py", "m", line(number), "y") for number in range(1, self.COUNT + 1)]
        folder.known("a.py").take([Result(mutant, Status.SURVIVED) for mutant in mutants], None, Changed(()))
        return folder

    @staticmethod
    def publisher(folder: Folder, wire: MemoryStream) -> Publisher:
        folders = Folders()
        folders.add(folder.session)
        folders._folders[:] = [folder]
        text, uri = "x\n" * TestTenThousandDiagnostics.COUNT, (folder.root / "a.py").as_uri()
        folders.documents[uri] = Document(uri, "a.py", SourceText(text))
        editor = Editor(Connection(MessageStream(wire)), lambda work, name: asyncio.create_task(work, name=name), {})
        return Publisher(editor, folders, lambda work, name: asyncio.create_task(work, name=name))

    async def test_are_made_in_slices_between_which_others_have_their_turn(self, folder: Folder) -> None:
        publisher, turns = self.publisher(folder, MemoryStream.pair()[0]), 0

        async def others() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        running = asyncio.create_task(others())
        assert len(await publisher.diagnostics(folder, "a.py")) == self.COUNT
        running.cancel()
        assert turns >= self.COUNT // SLICE

    async def test_that_are_found_one_by_one_are_not_all_published_each_time(
        self, folder: Folder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(publisher_module, "PAUSE_S", 0.001)
        ours, theirs = MemoryStream.pair()
        publisher = self.publisher(folder, ours)
        client, published = LspClient(theirs), list[int]()

        async def read() -> None:
            while not published or published[-1] < many:
                message = await client.receive()
                published.append(len(message["params"]["diagnostics"]))

        many = 2000
        folder.findings["a.py"] = findings = FileFindings()
        reading = asyncio.create_task(read())
        for number in range(1, many + 1):
            killed = Mutant("a.py", "n", line(number), "z")
            survived = Mutant("a.py", "m", line(number), "y")
            assert not findings.take([Result(killed, Status.KILLED)], None, Changed(()))
            assert findings.take([Result(survived, Status.SURVIVED)], None, Changed(()))
            assert not findings.take([Result(survived, Status.SURVIVED)], None, Changed(()))
            await publisher.changed(folder, "a.py")
            await asyncio.sleep(0)
        await publisher.flush(folder)
        await reading  # the last one has all
        assert published[:FEW] == list(range(1, FEW + 1))
        assert len(published) - FEW < 80  # by the logarithm of the time, and not one for each result

    async def test_that_are_older_are_not_shown_after_newer_ones(self, folder: Folder) -> None:
        ours, theirs = MemoryStream.pair()
        publisher, client = self.publisher(folder, ours), LspClient(theirs)
        older = asyncio.create_task(publisher.publish(folder, "a.py"))
        await asyncio.sleep(0)  # it has begun
        folder.known("a.py").move(Changed.between("x\n" * self.COUNT, "z"))
        newer = asyncio.create_task(publisher.publish(folder, "a.py"))
        assert await client.diagnostics() == []
        await older
        await newer
        assert ours.outgoing.writes[1:] == []
