"""Files split into the bodies of functions and the rest: what an edit changes of them."""

from pathlib import Path

import pytest

from msp_bridge.incremental.code import Code, CodeReader, SplitFile
from msp_bridge.model import Location, Mutant, Position, Ran
from msp_bridge.toolkit.sync import digest_of

TEXT = '''import os


class Cart:
    """What is bought."""

    size: int = 3

    @property
    def total(self):
        """The sum."""
        # of all
        return sum(self.prices)

    @total.setter
    def total(self, value):
        self.prices = [value]


if os.name:

    async def sent(
        cart,
        to="here",
    ):
        def inner():
            return cart

        await inner()


def short(): return 1


def empty():
    """Nothing."""


def last(a):
    yield a
'''


def split(text: str) -> SplitFile:
    found = SplitFile.of(text.encode(), "f digest")
    assert found is not None
    return found


def test_bodies_belong_to_the_outermost_function() -> None:
    assert {name: text.count("\0") for name, text in split(TEXT).texts.items()} == {
        "Cart.total": 2,
        "sent": 1,
        "last": 1,
    }


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ("sum(self", "max(self", {"Cart.total"}),
        ("# of all", "# of all\n\n        # and more", {"Cart.total"}),
        ("return cart", "return -cart", {"sent"}),
        ("yield a\n", "yield a\n    yield a\n", {"last"}),
    ],
)
def test_an_edit_of_a_body_leaves_the_rest(old: str, new: str, changed: set[str]) -> None:
    before, after = split(TEXT), split(TEXT.replace(old, new))
    assert before.rest == after.rest
    assert {name for name in before.texts if before.texts[name] != after.texts[name]} == changed


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("import os", "import os, sys"),
        ("size: int = 3", "size: int = 4"),
        ("@property", "@cached_property"),
        ("The sum.", "A sum."),
        ('to="here"', 'to="there"'),
        ("return 1", "return 2"),
        ('"""Nothing."""', "pass"),
        ("yield a", "return a"),
        ("self.prices = [value]", "self.prices = self.first = [value]"),
        ("sum(self.prices)", "super().total"),
        ("def last", "def first"),
        ("def last(a):", "\ndef last(a):"),
    ],
)
def test_what_shows_at_import_is_the_rest(old: str, new: str) -> None:
    assert TEXT.count(old) == 1
    assert split(TEXT).rest != split(TEXT.replace(old, new)).rest


def test_what_is_no_python_is_not_split() -> None:
    assert SplitFile.of(b"def", "") is None
    assert SplitFile.of(b"# coding: none\n", "") is None
    assert SplitFile.of(b"\0", "") is None


def code(text: str) -> Code:
    return Code(b"rest", {"a.py": split(text)})


def test_code_that_has_changed_is_not_there() -> None:
    before, after = code(TEXT), code(TEXT.replace("sum(self", "max(self"))
    total, last = (before.digests(Ran(frozenset({("a.py", name)}))) for name in ("Cart.total", "last"))
    read = before.digests(Ran(texts=frozenset({"a.py"})))
    assert before.has(total | last)
    assert (after.has(total), after.has(last), after.has(read)) == (False, True, True)


def mutant(line: int) -> Mutant:
    return Mutant("a.py", "number", Location(Position(line, 5), Position(line, 6)), "2")


def test_a_mutant_is_the_same_where_code_above_it_is_longer() -> None:
    moved = TEXT.replace("# of all", "# of all\n        # of them")
    last, short = TEXT.splitlines().index("    yield a") + 1, TEXT.splitlines().index("def short(): return 1") + 1
    for line in (last, short, 1):
        below = line + (line > 10)
        assert code(TEXT).identity(mutant(line), "a.py") == code(moved).identity(mutant(below), "a.py")
    assert code(TEXT).identity(mutant(last), "a.py") != code(TEXT).identity(mutant(short), "a.py")


def test_a_link_of_another_name_makes_a_file_part_of_the_rest(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(TEXT)
    files = {"a.py": f"f0 {digest_of(str(tmp_path / 'a.py'))}"}
    run = Ran(frozenset({("a.py", "last")}))
    assert CodeReader().code(tmp_path, "", files, b"").digests(run)
    assert not CodeReader().code(tmp_path, "", files | {"data.txt": "l0 a.py"}, b"").digests(run)
    assert not CodeReader().code(tmp_path, "", {"a.py": "f0 another"}, b"").digests(run)
