"""Verdicts on PIT's mutants beside those of PIT's own plug-in for Maven, with the real Java, Maven and PIT."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from msp_bridge.adapters.pit import Pit
from support.adapters import discovered
from support.java_trees import adapter_on, copied, key, needs_pit, results_of
from support.servers import until

from msp_bridge.adapter import Result, Status
from msp_bridge.testing import RunningProcesses
from msp_bridge.testing.comparison import FreshTool

pytestmark = [needs_pit, pytest.mark.asyncio(loop_scope="module")]
PRICE, STOCK = "price/src/main/java/example/price/Price.java", "stock/src/main/java/example/stock/Stock.java"
LAZY = "price/src/main/java/example/price/Lazy.java"
OF_LAZY = {
    LAZY: """package example.price;

final class Lazy {
    private static String greeting;

    static String greeting() {
        if (greeting == null) {
            greeting = prefix();
        }
        return greeting;
    }

    private static String prefix() {
        return "Hello";
    }
}
""",
    "price/src/test/java/example/price/LazyTest.java": """package example.price;

import org.junit.jupiter.api.Assertions;
import org.junit.jupiter.api.Test;

class LazyTest {
    @Test
    void greets() {
        Assertions.assertEquals("Hello", Lazy.greeting());
    }
}
""",
}
MINION = "org.pitest.mutationtest.execute.MutationTestMinion"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shop(tmp_path_factory: pytest.TempPathFactory, pit_tools: Path) -> AsyncIterator[Pit]:
    """One adapter for all tests: they share a build. `adapter_on` looks for what is left."""
    root = copied(tmp_path_factory.mktemp("shop"))
    for path, text in OF_LAZY.items():
        (root / path).write_text(text, "utf-8")
    async with adapter_on(root, pit_tools) as adapter:
        yield adapter


async def test_verdicts_are_those_of_pit_and_what_is_computed_once_is_computed_with_the_mutant(shop: Pit) -> None:
    """PIT's plug-in for JUnit 5 runs the test before the mutant is in the class: Maven's own run decides there."""
    mutants = await discovered(shop, PRICE, LAZY)
    mutants = [mutant for mutant in mutants if mutant.path == LAZY or mutant.location.start.line == 8]
    results = await results_of(shop, mutants)
    assert results["14 EmptyObjectReturnVals"].status is Status.KILLED
    right, survivor = results["8 Math"], results["8 Math (3)"]
    fresh = FreshTool(shop)
    known = await fresh.verdicts(list(results.values()))
    checked = await fresh.compare(list(results.values()), known=known)
    assert (checked.checked, checked.differences, checked.unsteady) == (len(results), (), ())
    assert [known[each.mutant].status for each in (right, survivor)] == [Status.KILLED, Status.SURVIVED]
    assert known[right.mutant].reason == "killed by example.price.PriceTest.multiplies()"
    assert not fresh.agrees(Result(survivor.mutant, Status.KILLED), known[survivor.mutant])


async def test_a_cancel_ends_the_tool(shop: Pit) -> None:
    running = RunningProcesses()
    endless = next(mutant for mutant in await discovered(shop, STOCK) if key(mutant) == "23 Math")
    verifying = asyncio.create_task(shop.fresh_results([Result(endless, Status.TIMEOUT)]))
    await until(lambda: any(MINION in process.cmdline() for process in running.look()))
    verifying.cancel()
    await asyncio.wait([verifying])
    assert verifying.cancelled()
    assert not any(MINION in process.cmdline() for process in running.look())
