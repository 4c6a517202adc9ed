"""Verdicts that say which functions they depend on: they are given again after an edit of others."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from msp_bridge.adapter import AskRanAlone, RanAlone, Reach, Surroundings
from msp_bridge.errors import BridgeError
from msp_bridge.incremental import rule
from msp_bridge.incremental.rule import Incremental, Verdicts
from msp_bridge.model import Dependencies, Location, Mutant, Position, Ran, Result, Status
from msp_bridge.toolkit.kept_answers import KeptAnswers

SOURCE = "def one():\n    return 1\n\n\ndef two():\n    return 2\n\n\ndef three():\n    return 3\n"
ONE = Mutant("shop/a.py", "m", Location(Position(2, 12), Position(2, 13)), "9")
RAN = Ran(frozenset({("a.py", "one"), ("a.py", "two")}))  # paths as the tool has them
TESTS = frozenset({"test_one", "test_two"})
NEAR = Reach(("test_two",), TESTS)


class Shop:
    """A project below the workspace's root, and what the tool says of one mutant in it."""

    def __init__(self, home: Path) -> None:
        self.root = home / "tree"
        (self.root / "shop").mkdir(parents=True)
        self.write(SOURCE)
        self.answers = KeptAnswers(home / "kept.sqlite")
        self.asked: list[tuple[list[Mutant], bool]] = []
        self.alone = RanAlone()
        self.reach: Mapping[Mutant, Reach] = {ONE: NEAR}
        self.around: Surroundings | None = Surroundings({"tool": "1.0"})

    def write(self, text: str, name: str = "shop/a.py") -> None:
        (self.root / name).write_text(text)

    async def surroundings(self) -> Surroundings | None:
        return self.around

    async def verdicts(self) -> Verdicts:
        return await Incremental(self.root, self.answers).verdicts("tool", "shop/", self.surroundings)

    async def reached(self, mutants: Sequence[Mutant], known: AskRanAlone, *, alone: bool) -> Mapping[Mutant, Reach]:
        self.asked.append((list(mutants), alone))
        self.alone = await known()
        return self.reach

    async def remember(self, result: Result, ran_alone: Mapping[str, tuple[Ran, ...]] | None = None) -> None:
        verdicts = await self.verdicts()
        verdicts.note(result)
        await verdicts.save(ran_alone or {})

    async def again(self) -> list[Result]:
        """The verdicts that are given again, by either rule."""
        verdicts = await self.verdicts()
        return await verdicts.known([ONE]) + await verdicts.unaffected([ONE], self.reached)


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def result(status: Status = Status.KILLED, *, tests: frozenset[str] | None = None, **more: object) -> Result:
    return Result(ONE, status, dependencies=Dependencies((RAN,), tests), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("old", "new", "name", "held"),
    [
        ("return 3", "return 33", "shop/a.py", True),
        ("return 2", "return 22", "shop/a.py", False),  # which ran
        ("return 1", "return 11", "shop/a.py", False),
        ("three", "four", "shop/a.py", False),  # the rest of the file
        ("", "# by itself", "shop/data.txt", False),
    ],
)
async def test_a_kill_holds_while_what_ran_has_not_changed(
    shop: Shop, old: str, new: str, name: str, held: bool
) -> None:
    await shop.remember(result(killed_by=("test_one",)))
    shop.write(SOURCE.replace(old, new) if old else new, name)
    again = await shop.again()
    assert [(one.mutant, one.status, one.killed_by, one.covered_by) for one in again] == (
        [(ONE, Status.KILLED, ("test_one",), ("test_two",))] if held else []
    )
    assert shop.asked == ([([ONE], False)] if held else [])


async def test_what_holds_is_remembered_for_the_new_state(shop: Shop) -> None:
    await shop.remember(result())
    shop.write(SOURCE.replace("return 3", "return 33"))
    verdicts = await shop.verdicts()
    assert await verdicts.known([ONE]) == []
    assert len(await verdicts.unaffected([ONE], shop.reached)) == 1
    await verdicts.save({})
    assert len(await (await shop.verdicts()).known([ONE])) == 1


@pytest.mark.parametrize(
    ("status", "reach", "static", "covered"),
    [
        (Status.SURVIVED, NEAR, False, ("test_two", "test_one")),
        (Status.SURVIVED, Reach(("test_two",), frozenset({"test_two"})), False, ("test_two", "test_one")),
        (Status.SURVIVED, Reach(("test_two",), TESTS | {"test_three"}), False, False),  # which could kill it
        (Status.SURVIVED, Reach((), TESTS), False, False),  # it is NoCoverage now
        (Status.NO_COVERAGE, Reach((), frozenset()), False, ()),
        (Status.NO_COVERAGE, Reach((), frozenset()), True, None),  # at import: whose tests run it is not known
        (Status.NO_COVERAGE, NEAR, False, False),
    ],
)
async def test_a_survivor_holds_while_no_other_test_could_kill_it(
    shop: Shop, status: Status, reach: Reach, static: bool, covered: Any
) -> None:
    await shop.remember(result(status, tests=TESTS, covered_by=("test_one",), static=static))
    shop.write(SOURCE.replace("return 3", "return 33"))
    shop.reach = {ONE: reach}
    again = [(one.status, one.covered_by) for one in await shop.again()]
    assert again == ([] if covered is False else [(status, covered)])
    assert shop.asked == [([ONE], True)]


async def test_nothing_holds_where_tests_can_not_be_relied_on(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    await shop.remember(result())
    shop.write(SOURCE.replace("return 3", "return 33"))
    shop.reach = {}
    assert await shop.again() == []
    assert "tool: all mutants are tested, for not every test passes without any, alone and in order" in caplog.messages


async def test_what_tests_ran_alone_is_told_for_as_long_as_it_holds(shop: Shop) -> None:
    alone = {"test_one": (Ran(frozenset({("a.py", "one")})),), "test_three": (Ran(frozenset({("a.py", "three")})),)}
    await shop.remember(result(), alone)
    shop.write(SOURCE.replace("return 3", "return 33"))
    await shop.again()
    assert shop.alone.tests.keys() == {"test_one"}
    [number] = shop.alone.tests["test_one"]
    assert shop.alone.functions[number] == ("a.py", "one")


async def test_without_dependencies_no_verdict_holds_after_an_edit(shop: Shop) -> None:
    await shop.remember(Result(ONE, Status.KILLED))
    assert len(await shop.again()) == 1
    shop.write(SOURCE.replace("return 3", "return 33"))
    assert await shop.again() == []


async def test_an_edit_while_the_reach_is_asked_for_ends_it(shop: Shop) -> None:
    await shop.remember(result())
    shop.write(SOURCE.replace("return 3", "return 33"))
    ask = shop.reached

    async def edited(mutants: Sequence[Mutant], known: AskRanAlone, *, alone: bool) -> Mapping[Mutant, Reach]:
        shop.write(SOURCE.replace("return 3", "return 333"))
        return await ask(mutants, known, alone=alone)

    verdicts = await shop.verdicts()
    assert await verdicts.unaffected([ONE], edited) == []
    assert shop.alone == RanAlone()


async def test_what_was_found_while_a_file_changed_is_not_kept_nor_what_comes_after(
    shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    verdicts = await shop.verdicts()
    verdicts.note(result())
    shop.write(SOURCE + "\n")
    await verdicts.save({})
    assert "tool: the project has changed since: the verdicts of this run are not kept" in caplog.messages
    shop.write(SOURCE)
    verdicts.note(result())
    await verdicts.save({})
    assert await (await shop.verdicts()).known([ONE]) == []


@pytest.mark.parametrize("meanwhile", [Surroundings({"tool": "2.0"}), None], ids=["another tool", "not known"])
async def test_surroundings_that_were_others_for_a_while_end_what_is_kept(
    shop: Shop, meanwhile: Surroundings | None
) -> None:
    verdicts = await shop.verdicts()
    verdicts.note(result())
    before, shop.around = shop.around, meanwhile
    saving = asyncio.create_task(verdicts.save({}))
    await asyncio.sleep(0)  # it looks at the project
    verdicts.note(result())
    await saving
    shop.around = before
    verdicts.note(result())
    await verdicts.save({})
    assert await (await shop.verdicts()).known([ONE]) == []


async def test_it_is_time_to_save_again_and_again(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rule, "SAVE_S", 0.0)
    monkeypatch.setattr(rule, "LOOKS", 1)
    verdicts = await shop.verdicts()
    async with asyncio.timeout(20):
        for _ in range(2):
            verdicts.note(result())
            while not verdicts.due:
                await asyncio.sleep(0.001)
            await verdicts.save({})


async def test_a_time_out_counts_when_it_comes_again(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    for known in (0, 0, 1):
        verdicts = await shop.verdicts()
        assert len(await verdicts.known([ONE])) == known
        assert caplog.messages[-1] == f"tool: the verdicts of {known} of 1 mutant are those of an earlier run"
        verdicts.note(result(Status.TIMEOUT))
        await verdicts.save({})
    shop.write(SOURCE.replace("return 3", "return 33"))
    assert await shop.again() == []


async def test_verdicts_are_those_of_one_tool_and_its_surroundings(shop: Shop) -> None:
    await shop.remember(result())
    incremental = Incremental(shop.root, shop.answers)
    assert await (await incremental.verdicts("other", "shop/", shop.surroundings)).known([ONE]) == []
    shop.around = Surroundings({"tool": "2.0"})
    assert await shop.again() == []
    shop.around = None
    with pytest.raises(BridgeError, match=r"^the tool can't say what surrounds it$"):
        await shop.verdicts()
