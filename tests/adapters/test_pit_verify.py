"""Verdicts on PIT's mutants beside those of PIT's own plug-in for Maven, with the real Java, Maven and PIT."""

import asyncio
from pathlib import Path

from support.java_trees import adapter_on, copied, discovered, key, needs_pit, results_of

from msp_bridge.adapter import Result, Status
from msp_bridge.testing import RunningProcesses
from msp_bridge.testing.comparison import FreshTool

pytestmark = needs_pit
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


async def test_verdicts_are_those_of_pit_with_a_new_jvm_for_each_mutant(tmp_path: Path, pit_tools: Path) -> None:
    async with adapter_on(copied(tmp_path), pit_tools) as adapter:
        mutants = [mutant for mutant in await discovered(adapter, PRICE) if mutant.location.start.line == 8]
        results = await results_of(adapter, mutants)
        right, wrong = results["8 Math"], Result(results["8 Math (3)"].mutant, Status.KILLED)  # no test kills it
        fresh = FreshTool(adapter)
        known = await fresh.verdicts([right, results["8 Math (3)"]])
    assert [known[each].status for each in (right.mutant, wrong.mutant)] == [Status.KILLED, Status.SURVIVED]
    assert known[right.mutant].reason == "killed by example.price.PriceTest.multiplies()"
    assert [fresh.agrees(each, known[each.mutant]) for each in (right, wrong)] == [True, False]


async def test_what_is_computed_once_is_computed_with_the_mutant(tmp_path: Path, pit_tools: Path) -> None:
    """PIT's plug-in for JUnit 5 runs the test before the mutant is in the class: Maven's own run decides."""
    root = copied(tmp_path)
    for path, text in OF_LAZY.items():
        (root / path).write_text(text, "utf-8")
    async with adapter_on(root, pit_tools) as adapter:
        results = await results_of(adapter, await discovered(adapter, LAZY))
        assert results["14 EmptyObjectReturnVals"].status is Status.KILLED
        checked = await FreshTool(adapter).compare(list(results.values()))
    assert (checked.checked, checked.differences, checked.unsteady) == (len(results), (), ())


async def test_a_cancel_ends_the_tool(tmp_path: Path, pit_tools: Path) -> None:
    """`adapter_on` looks for what is left."""
    running = RunningProcesses()
    async with adapter_on(copied(tmp_path), pit_tools) as adapter:
        mutants = await discovered(adapter, STOCK)
        endless = next(mutant for mutant in mutants if key(mutant) == "23 Math")
        verifying = asyncio.create_task(adapter.fresh_results([Result(endless, Status.TIMEOUT)]))
        while not any(MINION in process.cmdline() for process in running.look()):
            await asyncio.sleep(0.1)
        verifying.cancel()
        await asyncio.wait([verifying])
        assert verifying.cancelled()
        assert not any(MINION in process.cmdline() for process in running.look())
