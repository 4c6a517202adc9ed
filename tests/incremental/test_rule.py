"""The rule of `incremental.rule`, on a scripted tool: what is reused, and what is tested again."""

import asyncio
import contextlib
import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.scripted_trees import Tree

from msp_bridge.model import Result, Status
from msp_bridge.workspace.configuration import Configuration
from msp_bridge.workspace.selection import KnownMutant, Selection, Target

ON = Configuration(incremental=True)
PLUS = {"mutator": "plus", "find": "+", "replacement": "-", "status": "Survived"}
DIGIT = {"mutator": "digit", "find": "1", "replacement": "2", "details": {"killed_by": ["test_a", "test_b"]}}


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> "Shop":
    monkeypatch.setenv("MSP_BRIDGE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "tree").mkdir()
    return Shop(tmp_path)


class Shop:
    """A project of two files with a mutant each, and a tool that says `statuses` and keeps a log of its runs."""

    def __init__(self, home: Path) -> None:
        self.home, self.tree = home, Tree(home / "tree")
        self.notices: list[str] = []  # of all runs
        self.tree.write("a.py", "x = y + z\n")
        self.tree.write("b.py", "x = 1\n")
        self.script()

    def script(self, *mutations: dict[str, Any], **more: Any) -> None:
        entries = {"surroundings": {"tool": "1.0"}, "events": str(self.home), "files": "*.py"} | more
        self.tree.project("", *(mutations or (PLUS, DIGIT)), **entries)

    async def results(self, selection: Selection | None = None, *, anew: bool = False) -> list[Result]:
        async with self.tree.open(ON) as workspace:
            items = [item async for item in workspace.test(selection or Selection(), anew=anew)]
        self.notices += [str(item) for item in items if not isinstance(item, Result)]
        results = [item for item in items if isinstance(item, Result)]
        return sorted(results, key=lambda result: result.mutant.path)

    async def reused(self) -> int:
        return sum(result.reused for result in await self.results())


async def test_the_second_run_of_an_unchanged_tree_tests_nothing(shop: Shop) -> None:
    first = await shop.results()
    (shop.home / "log").unlink()
    second = await shop.results()
    assert [result.reused for result in first + second] == [False, False, True, True]
    assert [(one.mutant, one.status) for one in second] == [(one.mutant, one.status) for one in first]
    assert second[1].killed_by == ("test_a", "test_b")
    assert "testing" not in (shop.home / "log").read_text()


async def test_files_count_by_content(shop: Shop) -> None:
    await shop.results()
    file = shop.tree.root / "a.py"
    os.utime(file, ns=(1, 1))
    assert await shop.reused() == 2
    stamp = file.stat().st_mtime_ns
    file.write_text("x = y - z\n")
    os.utime(file, ns=(stamp, stamp))
    assert await shop.reused() == 0
    file.write_text("x = y + z\n")
    assert await shop.reused() == 2


CHANGES: dict[str, Callable[[Shop], Any]] = {
    "another file is new": lambda shop: shop.tree.write("data/prices.csv", "1\n"),
    "another file is gone": lambda shop: (shop.tree.root / "notes.txt").unlink(),
    "a file can be executed": lambda shop: (shop.tree.root / "notes.txt").chmod(0o755),
    "a directory is new": lambda shop: (shop.tree.root / "empty").mkdir(),
    "a link leads elsewhere": lambda shop: (
        (shop.tree.root / "link").unlink(),
        (shop.tree.root / "link").symlink_to("b.py"),
    ),
    "the tool is another one": lambda shop: shop.script(surroundings={"tool": "1.1"}, trees=[str(shop.home / "lib")]),
    "a tree outside has changed": lambda shop: (shop.home / "lib" / "lib.py").write_text("changed"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
async def test_any_change_has_everything_tested(shop: Shop, change: Callable[[Shop], Any]) -> None:
    shop.tree.write("notes.txt", "notes\n")
    (shop.tree.root / "link").symlink_to("a.py")
    (shop.home / "lib").mkdir()
    (shop.home / "lib" / "lib.py").write_text("lib")
    shop.script(trees=[str(shop.home / "lib")])
    await shop.results()
    assert await shop.reused() == 2
    change(shop)
    assert await shop.reused() == 0


async def test_variables_of_interpreters_and_those_that_are_named_count(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.tree.write("msp-bridge.toml", 'environment = ["SHOP_DATABASE"]\n')
    await shop.results()
    monkeypatch.setenv("UNRELATED", "1")
    assert await shop.reused() == 2
    monkeypatch.setenv("PYTHONHASHSEED", "1")
    assert await shop.reused() == 0
    monkeypatch.setenv("SHOP_DATABASE", "1")
    assert await shop.reused() == 0


async def test_what_git_and_caches_hold_does_not_count(shop: Shop) -> None:
    await shop.results()
    shop.tree.write(".git/HEAD", "elsewhere")
    shop.tree.write("__pycache__/a.pyc", "compiled")
    assert await shop.reused() == 2


async def test_a_timeout_is_reused_when_two_runs_in_the_same_state_agree(shop: Shop) -> None:
    shop.script(PLUS | {"status": "Timeout"}, DIGIT)
    for state in ("first", "second"):
        shop.tree.write("data.txt", state)
        found = [[(result.status.value, result.reused) for result in await shop.results()] for _ in range(4)]
        assert [row for run in found for row in run if row[0] == "Timeout"] == [
            ("Timeout", False),
            ("Timeout", False),
            ("Timeout", True),
            ("Timeout", True),
        ]


@pytest.mark.parametrize("status", ["RuntimeError", "Ignored"])
async def test_what_says_little_about_the_mutant_is_never_reused(shop: Shop, status: str) -> None:
    shop.script(PLUS | {"status": status}, DIGIT)
    await shop.results()
    assert [(result.status, result.reused) for result in await shop.results()] == [
        (Status(status), False),
        (Status.KILLED, True),
    ]


async def test_what_the_adapter_calls_not_reusable_is_not_reused(shop: Shop) -> None:
    shop.script(PLUS | {"details": {"reusable": False}}, DIGIT)
    await shop.results()
    assert [result.reused for result in await shop.results()] == [False, True]


async def test_a_tool_that_can_not_say_what_surrounds_it_has_nothing_reused(
    shop: Shop,
) -> None:
    shop.tree.project("", PLUS, DIGIT)
    await shop.results()
    assert await shop.reused() == 0
    why = "what its verdict depends on is not known: the tool can't say what surrounds it"
    assert shop.notices == [f"scripted: every mutant is tested: {why}"] * 2


async def test_verdicts_of_a_tree_that_changes_meanwhile_are_not_kept(shop: Shop) -> None:
    shop.script(PLUS, DIGIT | {"after": "gate"})
    async with shop.tree.open(ON) as workspace:
        results = workspace.test(Selection())
        await anext(results)
        file = shop.tree.write("data.txt", "for a moment")
        file.unlink()  # the content is as it was, and yet a test may have seen the file
        (shop.tree.root / "b.py").write_text("x = 1\n")
        (shop.home / "gate").touch()
        assert len([result async for result in results]) == 1
    assert await shop.reused() == 0
    assert await shop.reused() == 2


async def test_named_mutants_are_tested_anew_and_their_verdicts_kept(shop: Shop) -> None:
    [first, _] = await shop.results(anew=True)
    mutant = first.mutant
    known = Selection(mutants=(KnownMutant(mutant.path, mutant.location, mutant.mutator, mutant.replacement),))
    [again] = await shop.results(known, anew=True)
    assert not again.reused
    [reused] = await shop.results(Selection(targets=(Target("a.py"),)))
    assert reused.reused


DAMAGES = {
    "a number": "UPDATE answers SET value = 5",
    "a text": "UPDATE answers SET value = '{}'",
    "nonsense": "UPDATE answers SET value = x'00'",
    "rows under others' keys": "UPDATE answers SET value = (SELECT max(value) FROM answers)",
    "no table": "DROP TABLE answers",
}


@pytest.mark.parametrize("statement", DAMAGES.values(), ids=DAMAGES.keys())
async def test_a_damaged_store_of_verdicts_has_every_mutant_tested(
    shop: Shop, statement: str, caplog: pytest.LogCaptureFixture
) -> None:
    first = await shop.results()
    [store] = (shop.home / "cache").rglob("verdicts.sqlite")
    with contextlib.closing(sqlite3.connect(store)) as connection, connection:
        connection.execute(statement)
    again = await shop.results()
    assert [(one.mutant, one.status, one.reused) for one in again] == [(one.mutant, one.status, False) for one in first]
    assert "is damaged" in caplog.text
    assert await shop.reused() == 2


async def test_two_workspaces_at_once_share_what_they_know(shop: Shop) -> None:
    await asyncio.gather(*(shop.results() for _ in range(4)))
    assert await shop.reused() == 2


async def test_a_configuration_that_was_named_counts_by_content_wherever_it_lies(shop: Shop) -> None:
    named = Path(shutil.copy(shop.tree.root / "scripted.json", shop.home / "named.json"))

    async def reused() -> list[bool]:
        async with shop.tree.open(ON, str(named)) as workspace:
            return [result.reused async for result in workspace.test(Selection())]

    assert [await reused(), await reused()] == [[False] * 2, [True] * 2]
    named.write_text(named.read_text() + "\n")
    assert await reused() == [False] * 2


async def test_nothing_is_kept_where_it_is_not_asked_for(shop: Shop) -> None:
    async with shop.tree.open() as workspace:
        assert [result.reused async for result in workspace.test(Selection())] == [False, False]
    assert not list((shop.home / "cache").rglob("*.sqlite"))


async def test_the_setting_turns_it_on(shop: Shop) -> None:
    shop.tree.write("msp-bridge.toml", "incremental = true\n")
    for expected in (False, True):
        async with shop.tree.open() as workspace:
            assert [result.reused async for result in workspace.test(Selection())] == [expected] * 2
