"""Newest first: an older request waits while a newer one makes progress, and only then."""

import asyncio

from support.scripted_trees import DIGIT, Tree, statuses

from msp_bridge.workspace.configuration import Configuration
from msp_bridge.workspace.scheduler import JobBudget, RequestScheduler, Turn


def may_go_on(*turns: Turn) -> list[bool]:
    return [turn.may_go_on.is_set() for turn in turns]


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_the_newest_goes_on_and_the_older_ones_in_reverse_order() -> None:
    scheduler = RequestScheduler()
    with scheduler.turn() as oldest:
        with scheduler.turn() as older:
            with scheduler.turn() as newest:
                assert may_go_on(oldest, older, newest) == [False, False, True]
            assert may_go_on(oldest, older) == [False, True]
        assert may_go_on(oldest) == [True]


async def test_an_older_one_that_ends_changes_nothing_for_the_newest() -> None:
    scheduler = RequestScheduler()
    first = scheduler.turn()
    first.__enter__()
    with scheduler.turn() as newest:
        first.__exit__(None, None, None)
        assert may_go_on(newest) == [True]


async def test_a_request_waits_until_the_newer_one_is_done() -> None:
    scheduler = RequestScheduler()
    with scheduler.turn() as older:
        with scheduler.turn():
            waiting = asyncio.create_task(older.wait())
            await settle()
            assert not waiting.done()
        await waiting


async def test_a_request_with_an_idle_client_holds_up_no_other() -> None:
    scheduler = RequestScheduler()
    with scheduler.turn() as oldest, scheduler.turn() as older, scheduler.turn() as newest:
        with newest.paused():
            assert may_go_on(oldest, older) == [False, True]
            with older.paused():
                assert may_go_on(oldest) == [True]
            assert may_go_on(oldest, older) == [False, True]
        assert may_go_on(oldest, older, newest) == [False, False, True]


async def test_a_pause_that_is_over_at_once_lets_nobody_through() -> None:
    scheduler = RequestScheduler()
    with scheduler.turn() as older, scheduler.turn() as newest:
        waiting = asyncio.create_task(older.wait())
        await settle()
        for _ in range(10):
            with newest.paused():
                pass
            await settle()
        assert not waiting.done()
        waiting.cancel()


class TestJobBudget:
    """One bound on the mutants that are tested at once."""

    def test_one_tool_has_all_and_several_divide_them(self) -> None:
        budget = JobBudget(5)
        assert budget.share_of("a") == 5
        with budget.active("a"):
            assert budget.share_of("a") == 5
            with budget.active("b"):
                assert (budget.share_of("a"), budget.share_of("b")) == (3, 2)
            assert budget.share_of("a") == 5

    def test_every_tool_has_one_at_least(self) -> None:
        budget = JobBudget(1)
        with budget.active("a"), budget.active("b"):
            assert (budget.share_of("a"), budget.share_of("b")) == (1, 1)

    def test_two_requests_to_one_tool_are_one_party(self) -> None:
        budget = JobBudget(4)
        with budget.active("a"), budget.active("a"), budget.active("b"):
            assert (budget.share_of("a"), budget.share_of("b")) == (2, 2)

    def test_a_paused_tool_leaves_its_share_to_the_others(self) -> None:
        budget = JobBudget(4)
        with budget.active("a"), budget.active("b"):
            with budget.paused("a"):
                assert budget.share_of("b") == 4
            assert budget.share_of("b") == 2

    async def test_projects_that_run_side_by_side_get_their_share(self, tree: Tree) -> None:
        seen = []
        for folder in ("api/", "web/"):
            tree.project(folder, {**DIGIT, "after": "go"}, events=str(tree.root))
            tree.write(f"{folder}a.py", "1")
        async with tree.open(Configuration(jobs=4)) as workspace:
            projects = [tool.adapter._project for tool in workspace.tools]
            assert [project.jobs for project in projects] == [4, 4]
            running = asyncio.create_task(statuses(workspace))
            while (tree.root / "log").exists() is False or (tree.root / "log").read_text().count("waiting") < 2:
                await asyncio.sleep(0.01)
            seen = [project.jobs for project in projects]
            (tree.root / "go").touch()
            assert len(await running) == 2
        assert seen == [2, 2]
