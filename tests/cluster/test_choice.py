"""Where a request is tested: by the number of its mutants, and by what both sides have needed once that is known."""

import contextlib
from collections.abc import AsyncGenerator, Sequence

import pytest

from msp_bridge.cluster.choice import PlaceChoice, Side
from msp_bridge.cluster.wire import IDLE_S
from msp_bridge.errors import ToolError
from msp_bridge.model import Location, Mutant, Position, Result, Status


class Clock:
    """Time that passes when a test says so."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def choice(clock: Clock) -> PlaceChoice:
    return PlaceChoice(8, Side(clock), Side(clock))


async def results(clock: Clock, waits: Sequence[float], fails: bool) -> AsyncGenerator[Result, None]:
    for number, seconds in enumerate(waits):
        clock.now += seconds
        yield Result(Mutant("f", "m", Location(Position(number + 1, 1), Position(number + 1, 2)), "x"), Status.KILLED)
    if fails:
        raise ToolError("the scheduler is gone", "start it")


async def request(side: Side, clock: Clock, *waits: float, taking: float = 0, fails: bool = False) -> None:
    """Results that come after these seconds, to somebody who is busy with each for `taking`; then it may fail."""
    testing = results(clock, waits, fails)
    async with contextlib.aclosing(testing), contextlib.aclosing(side.timed(testing)) as timed:
        async for _ in timed:
            clock.now += taking


async def warm(choice: PlaceChoice, clock: Clock) -> None:
    """Here a mutant takes 2 s; the cluster needs 5 s until its first result, and 0.5 s for each further one."""
    for _ in range(2):
        await request(choice.here, clock, 2, 2, 2)
        await request(choice.cluster, clock, 5, 0.5, 0.5, 0.5)


async def test_the_number_of_mutants_decides_while_nothing_is_known(choice: PlaceChoice, clock: Clock) -> None:
    assert choice.is_local(8)
    assert not choice.is_local(9)
    await request(choice.here, clock, 30, 2)
    await request(choice.cluster, clock, 90, 0.1)
    assert choice.is_local(8), "the first requests have opened the adapter"
    assert not choice.is_local(9)


async def test_the_faster_side_is_chosen_when_both_are_known(choice: PlaceChoice, clock: Clock) -> None:
    await warm(choice, clock)
    assert choice.is_local(3)
    assert not choice.is_local(4), "slow mutants go to the workers, though they are few"
    await request(choice.here, clock, 0.01, 0.01)
    assert choice.is_local(200), "fast ones stay, though they are many"
    await request(choice.here, clock, 3)
    assert choice.is_local(5), "a single result says nothing of those that follow it"


async def test_what_the_client_takes_its_time_for_is_not_counted(choice: PlaceChoice, clock: Clock) -> None:
    await warm(choice, clock)
    await request(choice.here, clock, 0.01, 0.01, taking=100)
    assert choice.is_local(200)


async def test_a_measure_holds_as_long_as_workers_are_warm(choice: PlaceChoice, clock: Clock) -> None:
    await warm(choice, clock)
    clock.now += IDLE_S
    assert choice.is_local(8), "as if nothing was known"
    await request(choice.here, clock, 60, 60)
    await request(choice.cluster, clock, 60, 60)
    assert choice.is_local(8), "both sides have opened the adapter anew"


async def test_a_cluster_that_failed_is_not_chosen_again_because_it_was_fast(choice: PlaceChoice, clock: Clock) -> None:
    await warm(choice, clock)
    assert not choice.is_local(4)
    with pytest.raises(ToolError):
        await request(choice.cluster, clock, 1, fails=True)
    assert choice.is_local(8), "as if nothing was known"


async def test_no_mutant_stays_where_none_may(clock: Clock) -> None:
    choice = PlaceChoice(0, Side(clock), Side(clock))
    await warm(choice, clock)
    assert not choice.is_local(1)
