"""Names of tests as people write them, from those of PIT."""

from __future__ import annotations

import re
from collections.abc import Sequence

UNIQUE_ID = re.compile(r"\[([\w-]+):([^\]]*)\]")  # of JUnit's platform
TESTNG = "._"  # after the name of a class, which is one test
JUNIT4 = re.compile(r"(.+)\(([\w.$]+)\)")
FAILING = re.compile(r"^Description \[testClass=([\w.$]+), name=(.+?)\](?: did not pass.*)?$", re.MULTILINE)


def readable_name(name: str) -> str:
    """Shorten a name to `example.PriceTest.total()`.

    PIT's is the class, a dot, and what identifies the test in its framework: `[engine:…]/[class:…]/[method:…]` of
    JUnit 5, `total(example.PriceTest)` of JUnit 4, `_` of TestNG.
    """
    parts = [text for kind, text in UNIQUE_ID.findall(name) if kind != "engine"]
    if parts:
        return ".".join(parts)
    match = JUNIT4.search(name)
    return f"{match[2]}.{match[1].removeprefix(f'{match[2]}.')}" if match else name.removesuffix(TESTNG)


def killing_tests(names: Sequence[str]) -> tuple[str, ...]:
    """Shorten the names, but for classes of TestNG whose methods are among them."""
    classes = {name.rpartition(".")[0] + TESTNG for name in names if not name.endswith(TESTNG)}
    return tuple(readable_name(name) for name in names if name not in classes)


def failing_tests(printed: str) -> tuple[str, ...]:
    """Find the tests that fail without a mutant, in PIT's warnings about them."""
    return tuple(dict.fromkeys(readable_name(f"{group}.{name}") for group, name in FAILING.findall(printed)))


def all_ran(names: Sequence[str], run: int) -> bool:
    """Whether `run` says that each test was run: PIT counts the methods of TestNG beside their class."""
    return run >= 2 * len(names) if all(name.endswith(TESTNG) for name in names) else run == len(names)
