"""What one edit has tested again, and what not, with mutmut: a test for each kind of thing that a verdict depends on."""

import contextlib
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from msp_bridge.adapters.mutmut import Mutmut
from support.files import written
from support.mutmut_trial import discover_here

from msp_bridge.model import Result, Status
from msp_bridge.workspace.configuration import Configuration
from msp_bridge.workspace.selection import Selection
from msp_bridge.workspace.workspace import Workspace

SHOP = {
    "pyproject.toml": '[tool.mutmut]\nsource_paths = ["shop"]\n\n[tool.pytest.ini_options]\ntestpaths = ["tests"]\n',
    "shop/__init__.py": "",
    "shop/cart.py": '''"""What is bought."""

from shop.rates import rate


def total(prices, kind):
    """The sum."""
    return sum(prices) + rate(kind)


def discount(price):
    if price > 100:
        return reduced(price)
    return price


def reduced(price):
    return price - 10


def shown(price):
    label = "price"
    return f"{label}: {price}" if price > 5 else ""


def unused(price):
    return price + 1
''',
    "shop/rates.py": """def rate(kind):
    return 7 if kind == "fast" else 2


def scale():
    return 3


SCALE = scale()
""",
    "shop/source.py": """def first(lines):
    return lines[0] + "!"
""",
    "notes.txt": "notes\n",
    "tests/conftest.py": """import pytest


@pytest.fixture
def prices():
    return [3, 4]
""",
    "tests/test_cart.py": """from shop import cart


def test_total(prices):
    assert cart.total(prices, "fast") == 14


def test_discount():
    assert cart.discount(100) == 100


def test_shown():
    assert cart.shown(7)
""",
    "tests/test_source.py": """import inspect

from shop import rates, source


def test_first():
    assert source.first(inspect.getsource(rates.rate).splitlines()) == "def rate(kind):!"
""",
}
EVERY = {"scale"}  # runs at import, and its mutants survive all tests: they depend on whatever these run
ALL = {"total", "discount", "reduced", "shown", "unused", "rate", "scale", "first"}
Edit = tuple[str, str, str]  # path, text, what stands for it


@pytest.fixture(autouse=True)
def asked_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Mutmut, "_discover", discover_here)


async def results(root: Path, store: Path, *, anew: bool = False) -> list[Result]:
    configuration = Configuration(
        adapters=("mutmut",), python=Path(sys.executable), jobs=2, incremental=True, store=store
    )
    async with contextlib.aclosing(Workspace.open(root, configuration)) as workspace:
        return [item async for item in workspace.test(Selection(), anew=anew) if isinstance(item, Result)]


def functions(root: Path, found: list[Result], which: Callable[[Result], bool]) -> set[str]:
    """The functions that have mutants of which `which` is true."""
    names = set()
    for result in found:
        if which(result):
            lines = (root / result.mutant.path).read_text().splitlines()[: result.mutant.location.start.line]
            name = next(line for line in reversed(lines) if line.startswith("def "))
            names.add(name.removeprefix("def ").partition("(")[0])
    return names


def edited(root: Path, edit: Edit) -> None:
    path, old, new = edit
    (root / path).touch()
    text = (root / path).read_text()
    assert text.count(old) == 1
    (root / path).write_text(text.replace(old, new))


def run_alone(caplog: pytest.LogCaptureFixture) -> list[str]:
    """How many tests were, each time, since this was asked last."""
    found = [record.getMessage().partition(" run alone")[0] for record in caplog.records]
    caplog.clear()
    return [text for text in found if text.endswith(("test", "tests"))]


async def check_is_true(root: Path, store: Path, found: list[Result]) -> None:
    """The verdicts of a run that knows nothing are the same."""
    anew = await results(root, store, anew=True)
    assert {one.mutant: one.status for one in anew} == {one.mutant: one.status for one in found}


EDITS: dict[
    str, tuple[Edit, set[str]]
] = {  # one after the other, and the functions whose mutants are to be tested again
    "the mutated function": (("shop/cart.py", "    return price\n", "    return +price\n"), {"discount", *EVERY}),
    "a function of another file that the tests run": (
        ("shop/rates.py", 'kind == "fast"', '"fast" == kind'),
        {"total", "rate", "first", *EVERY},  # the source of the file is read by the tests of the last
    ),
    "a fixture": (("tests/conftest.py", "[3, 4]", "[4, 3]"), {"total", "rate", *EVERY}),
    "a test": (("tests/test_cart.py", "cart.shown(7)", 'cart.shown(7) == "price: 7"'), {"shown", *EVERY}),
    "a function, below which others move": (
        ("shop/cart.py", "    return sum(", "    # all of them\n\n    return sum("),
        {"total", "rate", *EVERY},  # its test runs both
    ),
    "a function that only a mutant runs": (("shop/cart.py", "price - 10", "price - 0"), {"discount", "reduced"}),
    "a function, which runs another one now": (
        ("shop/cart.py", "    return +price\n", "    return unused(price) - 1\n"),
        {"discount", "unused", *EVERY},
    ),
}
EDITS_FOR_ALL: dict[str, Edit] = {  # `test_rule.py` and `test_code.py` have more, without a tool
    "a function that runs at import": ("shop/rates.py", "    return 3\n", "    return +3\n"),
    "a data file": ("notes.txt", "notes", "other notes"),
    "a test that fails now": ("tests/test_cart.py", "cart.shown(7) ==", "cart.shown(7) !="),
}
ALONE = {  # how many tests run alone again: those that ran what was edited, or have read it
    "the mutated function": ["1 test"],
    "a function of another file that the tests run": ["2 tests"],
    "a function that runs at import": ["4 tests"],
}


def check_alone(caplog: pytest.LogCaptureFixture, what: str) -> None:
    alone = run_alone(caplog)
    assert alone == ALONE.get(what, alone), what


async def test_what_each_edit_has_tested_again(
    every_case: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("MSP_BRIDGE_CACHE", str(tmp_path / "cache"))
    caplog.set_level("INFO", "msp_bridge.python_engine.host")
    root, store = tmp_path / "project", tmp_path / "verdicts.sqlite"
    written(root, SHOP)
    assert functions(root, await results(root, store), lambda _: True) == ALL
    assert run_alone(caplog) == ["4 tests"]
    for what, (edit, tested) in EDITS.items():
        edited(root, edit)
        found = await results(root, store)
        assert functions(root, found, lambda result: not result.reused) == tested, what
        check_alone(caplog, what)
    uncovered = {result.mutant.location.start.line for result in found if result.status is Status.NO_COVERAGE}
    assert uncovered == {15, 20}, "they have moved"
    assert [result for result in await results(root, store) if not result.reused] == []
    await check_is_true(root, store, found)
    caplog.clear()
    for what, edit in EDITS_FOR_ALL.items() if every_case else ():
        edited(root, edit)
        found = await results(root, store)
        assert functions(root, found, lambda result: not result.reused) == ALL, what
        check_alone(caplog, what)
    if every_case:
        await check_is_true(root, store, found)


CACHED = """import functools


@functools.cache
def answer():
    return compute(20) * 2


def compute(number):
    return number + 1


def shift(number):
    return number


def other():
    return 5
"""
CACHED_TESTS = """from shop.cart import answer, other, shift


def test_first():
    assert shift(answer()) > 5


def test_second():
    assert shift(answer()) == 42


def test_other():
    assert other() == 5
"""


async def test_what_only_shows_alone_is_found_after_an_edit_too(
    every_case: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The first test fills a cache: that the second one runs `compute`, too, shows when it runs alone."""
    monkeypatch.setenv("MSP_BRIDGE_CACHE", str(tmp_path / "cache"))
    caplog.set_level("INFO", "msp_bridge.python_engine.host")
    root, store = tmp_path / "project", tmp_path / "verdicts.sqlite"
    files = {path: text for path, text in SHOP.items() if path in ("pyproject.toml", "shop/__init__.py")}
    written(root, files | {"shop/cart.py": CACHED, "tests/test_cart.py": CACHED_TESTS})
    await results(root, store)
    assert run_alone(caplog) == ["3 tests"]
    for old, new, alone in (
        ("number + 1", "1 + number", ["2 tests"]),
        *([("    return number\n", "    return +number\n", ["2 tests"])] if every_case else []),
        ("return 5", "return +5", []),  # no mutant of it survives
    ):
        edited(root, ("shop/cart.py", old, new))
        found = await results(root, store)
        assert run_alone(caplog) == alone, old
        assert {one.status for one in found} == {Status.KILLED}
    await check_is_true(root, store, found)


KEPT = {  # what one test leaves, and what another one finds only with a mutant of `suffix`, which runs at import
    "a cached value": (
        """import functools


@functools.cache
def known():
    return {"fish", "sheep"}


def suffix():
    return "s"


SUFFIX = suffix()


def plural(word):
    return word if len(SUFFIX) > 1 and word in known() else word + SUFFIX[:1]
""",
        """from shop import cart


def test_known():
    assert "sheep" in cart.known()


def test_fish():
    assert cart.plural("fish") != "fishX"
""",
        ("shop/cart.py", '{"fish", "sheep"}', '{"sheep"}'),
    ),
    "a variable": (
        """KNOWN = {"fish"}


def suffix():
    return "s"


SUFFIX = suffix()


def plural(word):
    return word if word in KNOWN else word + SUFFIX
""",
        """from shop import cart


def test_known():
    cart.KNOWN.add("sheep")
    assert cart.plural("sheep") == "sheep"
    cart.KNOWN.remove("sheep")


def test_fish():
    assert len(cart.plural("fish")) <= 5
""",
        ("tests/test_cart.py", 'KNOWN.remove("sheep")', "KNOWN.clear()"),
    ),
}


@pytest.mark.parametrize(("code", "tests", "edit"), KEPT.values(), ids=KEPT.keys())
async def test_a_survivor_at_import_may_be_killed_by_a_test_that_does_not_run_what_was_edited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, tests: str, edit: Edit
) -> None:
    """Nor does that test run it alone: so all tests are run for such a mutant, not only those that the edit concerns."""
    monkeypatch.setenv("MSP_BRIDGE_CACHE", str(tmp_path / "cache"))
    root, store = tmp_path / "project", tmp_path / "verdicts.sqlite"
    files = {path: text for path, text in SHOP.items() if path in ("pyproject.toml", "shop/__init__.py")}
    written(root, files | {"shop/cart.py": code, "tests/test_cart.py": tests})
    before = {one.mutant.replacement: one.status for one in await results(root, store)}
    edited(root, edit)
    found = await results(root, store)
    after = {one.mutant.replacement: one.status for one in found}
    assert (before['"XXsXX"'], after['"XXsXX"']) == (Status.SURVIVED, Status.KILLED)
    await check_is_true(root, store, found)
