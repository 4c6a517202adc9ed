"""What importing a test file may do for tests of other files."""

from pathlib import Path
from textwrap import dedent

import pytest
from support.mutmut_trial import PACKAGE, Trial

from msp_bridge.adapter import Status
from msp_bridge.python_engine.programs.import_effects import ImportEffects

HARMLESS = """
import os
import re as regex
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from pkg import shop

HERE = Path(__file__).parent
WORDS = regex.compile("a").split("bab")
slow = pytest.mark.skipif(os.name == "nt", reason="slow")
later = lambda: shop.buy()


@dataclass
class Case:
    name: str = field(default="x")


class TestShop(shop.Base):
    words = [*"ab", str(HERE)]

    @slow
    @pytest.mark.parametrize("case", ["a", *WORDS])
    def test_it(self, case, size=len(WORDS)): shop.buy()
"""


def test_definitions_marks_and_literals_are_harmless() -> None:
    assert not ImportEffects(HARMLESS).any


@pytest.mark.parametrize(
    "more",
    [
        "shop.buy()",
        "if os.name: import json",
        "shop.size = 2",
        "ADDED = shop.HANDLERS.append(later)",
        "CASE = Case()",
        "from shop import len\nSIZE = len([])",
        "SIZES = [shop.size(each) for each in '12']",
        "@shop.register\ndef handler(): ...",
        "@shop.register('a')\nclass Handler: ...",
        "class TestMore:\n    shop = shop.new()",
        "def helper(a=shop.new()): ...",
        "@pytest.mark.parametrize('a', [shop.new()])\ndef test_new(a): ...",
        "class Made(shop.base()): ...",
    ],
)
def test_calls_of_anything_else_are_effects(more: str) -> None:
    assert ImportEffects(f"{HARMLESS}\n{more}\n").any


EFFECT = "shop.register(handler)\ndef handler():\n    helper()\ndef helper(): ...\n"


@pytest.mark.parametrize(
    ("text", "is_same"),
    [
        (f"{EFFECT}def test_new(): ...", True),
        (f"{EFFECT}class TestNew:\n    def test_new(self): ...", True),
        (f"{EFFECT}class New:\n    def test_new(self): ...", False),
        (EFFECT.replace("...", "pass"), False),
        (f"import json\n{EFFECT}", False),
    ],
)
def test_a_new_test_is_no_code_that_an_effect_may_lead_to(text: str, is_same: bool) -> None:
    assert (ImportEffects(text).code == ImportEffects(EFFECT).code) is is_same


SUBJECT = """
HANDLERS = []


def register(handler):
    HANDLERS.append(handler)
    return handler


class Base:
    def value(self):
        return 1


def values():
    return [each().value() for each in Base.__subclasses__()] + [handler() for handler in HANDLERS]


@register
def one():
    return 1


def twice(a):
    return a * 2
"""
ENUMERATES = "from pkg.subject import values\n\n\ndef test_it():\n    assert all(value < 5 for value in values())\n"
NEW = "from pkg.subject import Base, register, twice\n\n\ndef test_new():\n    pass\n\n\n"
SUBCLASS = f"{NEW}class Mine(Base):\n    def value(self):\n        return twice(2)\n"
HANDLER = f"{NEW}@register\ndef mine():\n    return twice(2)\n"
FILES = {**PACKAGE, "pkg/subject.py": dedent(SUBJECT).encode(), "tests/test_it.py": ENUMERATES.encode()}


async def ends_of_twice(trial: Trial) -> dict[str, Status]:
    """How its mutants end: with `a / 2` and `a * 3`."""
    return {name[-1]: result.status for name, result in (await trial.test()).items() if "x_twice_" in name}


@pytest.mark.parametrize("new", [SUBCLASS, HANDLER], ids=["subclass", "handler"])
async def test_what_a_new_file_registers_is_run_by_tests_of_others(tmp_path: Path, new: str) -> None:
    async with Trial.of(FILES, tmp_path) as trial:
        assert set((await ends_of_twice(trial)).values()) == {Status.NO_COVERAGE}
        trial.write("tests/test_new.py", new)
        assert await ends_of_twice(trial) == {"1": Status.SURVIVED, "2": Status.KILLED}
        trial.edit("tests/test_new.py", "return twice(2)", "return 2")
    async with Trial.of({}, tmp_path) as trial:
        assert set((await ends_of_twice(trial)).values()) == {Status.NO_COVERAGE}
