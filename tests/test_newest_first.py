"""Newest first: an older request waits while a newer one makes progress, and only then."""

from __future__ import annotations

import asyncio

from msp_bridge.workspace.precedence import Precedence, Turn


def may_go_on(*turns: Turn) -> list[bool]:
    return [turn.may_go_on.is_set() for turn in turns]


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_single_request_never_waits() -> None:
    with Precedence().turn() as turn:
        await turn.wait()


async def test_the_newest_goes_on_and_the_older_ones_in_reverse_order() -> None:
    precedence = Precedence()
    with precedence.turn() as oldest:
        with precedence.turn() as older:
            with precedence.turn() as newest:
                assert may_go_on(oldest, older, newest) == [False, False, True]
            assert may_go_on(oldest, older) == [False, True]
        assert may_go_on(oldest) == [True]


async def test_an_older_one_that_ends_changes_nothing_for_the_newest() -> None:
    precedence = Precedence()
    first = precedence.turn()
    first.__enter__()
    with precedence.turn() as newest:
        first.__exit__(None, None, None)
        assert may_go_on(newest) == [True]


async def test_a_request_waits_until_the_newer_one_is_done() -> None:
    precedence = Precedence()
    with precedence.turn() as older:
        with precedence.turn():
            waiting = asyncio.create_task(older.wait())
            await settle()
            assert not waiting.done()
        await waiting


async def test_a_request_whose_results_nobody_takes_holds_up_no_other() -> None:
    precedence = Precedence()
    with precedence.turn() as oldest, precedence.turn() as older, precedence.turn() as newest:
        with newest.rest():
            assert may_go_on(oldest, older) == [False, True]
            with older.rest():
                assert may_go_on(oldest) == [True]
            assert may_go_on(oldest, older) == [False, True]
        assert may_go_on(oldest, older, newest) == [False, False, True]


async def test_a_rest_that_is_over_at_once_lets_nobody_through() -> None:
    precedence = Precedence()
    with precedence.turn() as older, precedence.turn() as newest:
        waiting = asyncio.create_task(older.wait())
        await settle()
        for _ in range(10):
            with newest.rest():
                pass
            await settle()
        assert not waiting.done()
        waiting.cancel()
