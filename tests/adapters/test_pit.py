"""PIT through the bridge: every kind of mutant in a project of two modules, with the real Java, Maven and PIT."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from attrs import evolve
from msp_bridge.adapters.pit import Pit
from support.adapters import discovered, refusal
from support.environments import program
from support.files import written
from support.java_trees import SMALLEST, adapter_on, key, needs_pit, pit_pom, processes, results_of, smallest
from support.projects import EXAMPLES, copied
from support.servers import until

from msp_bridge.adapter import BaselineError, Result, Status, ToolError
from msp_bridge.testing import RunningProcesses, TreeState
from msp_bridge.testing.comparison import FreshTool

pytestmark = [needs_pit, pytest.mark.asyncio(loop_scope="module")]
PRICE, STOCK = "price/src/main/java/example/price/Price.java", "stock/src/main/java/example/stock/Stock.java"
MINION = "org.pitest.mutationtest.execute.MutationTestMinion"
WAITS = "steps++; java.util.concurrent.locks.LockSupport.parkNanos(1_000_000);"  # endless, it needs no CPU time
RATES = "stock/src/main/java/example/stock/Rates.java"
OF_RATES = {
    RATES: """package example.stock;

import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.locks.LockSupport;

final class Rates {
    private static final Map<Integer, Integer> KNOWN = new HashMap<>();

    static int rate(int price) {
        if (price > 1000) {
            return 9;
        }
        if (price < 0) {
            new Thread(() -> { while (true) LockSupport.park(); }).start();
        }
        return KNOWN.computeIfAbsent(price, each -> each * 2);
    }
}
""",
    "stock/src/test/java/example/stock/RatesTest.java": """package example.stock;

import org.junit.Assert;
import org.junit.Test;

public class RatesTest {
    @Test
    public void rates() {
        Assert.assertEquals(8, Rates.rate(4));
    }
}
""",
}
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

    static int greeted;

    static void greet() {
        greeted++;
    }

    static void leave() {
        greeted--;
    }
}
""",
    "price/src/test/java/example/price/FirstTest.java": """package example.price;

import org.junit.jupiter.api.Test;

class FirstTest {
    @Test
    void greetsAndLeaves() {
        Lazy.greeting();
        Lazy.greet();
        Lazy.leave();
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

    @Test
    void nobodyIsThere() {
        Assertions.assertEquals(0, Lazy.greeted);
    }
}
""",
}
VERDICTS = {
    "8 Math": Status.KILLED,
    "8 Math (3)": Status.SURVIVED,
    "12 ConditionalsBoundary": Status.SURVIVED,
    "12 NegateConditionals": Status.KILLED,
    "16 InvertNegs": Status.NO_COVERAGE,
}
RATES_VERDICTS = {
    "17 Math": Status.KILLED,  # and leaves a wrong rate in a static field
    "11 ConditionalsBoundary": Status.SURVIVED,
    "14 NegateConditionals": Status.SURVIVED,
}


NO_COMPILER = """# In place of Maven, which takes eight seconds: what it prints.
echo "[ERROR] COMPILATION ERROR : "
echo "[ERROR] $PWD/src/test/java/f/FTest.java:[6,42] illegal start of expression"
echo "[ERROR] Failed to execute goal x: Compilation failure"
exit 1
"""


@pytest.fixture(scope="module")
def running() -> RunningProcesses:
    return RunningProcesses()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shop(
    tmp_path_factory: pytest.TempPathFactory, pit_tools: Path, running: RunningProcesses
) -> AsyncIterator[Pit]:
    """One adapter for tests that edit nothing: they share a build."""
    root = copied(EXAMPLES / "shop-java", tmp_path_factory.mktemp("shop"))
    stock = (root / STOCK).read_text("utf-8").replace("steps++;", WAITS)
    written(root, {**OF_RATES, **OF_LAZY, STOCK: stock})
    tree = TreeState.of(root)
    async with adapter_on(root, pit_tools) as adapter:
        yield adapter
    assert tree.differences(TreeState.of(root)) == await running.settled(0) == []


async def test_mutants_get_the_verdicts_of_pit_and_the_names_of_their_tests(shop: Pit) -> None:
    mutants = await discovered(shop, PRICE)
    results = await results_of(shop, [mutant for mutant in mutants if key(mutant) in VERDICTS])
    assert len(mutants) == 10
    assert {key: result.status for key, result in results.items()} == VERDICTS
    assert results["8 Math"].killed_by == ("example.price.PriceTest.multiplies()",)
    assert results["12 ConditionalsBoundary"].covered_by == ("example.price.PriceTest.largeOrdersAreFree()",)


async def test_a_cancel_ends_an_endless_mutant_and_keeps_what_was_measured(
    shop: Pit, running: RunningProcesses
) -> None:
    mutants = {key(mutant): mutant for mutant in await discovered(shop, STOCK)}
    killed, endless = mutants["14 NegateConditionals"], mutants["23 Math"]
    for main in ("Tester", MINION):  # the second has the last word on a time-out
        before = processes(running, main)
        async with contextlib.aclosing(shop.test([endless])) as items:
            waiting = asyncio.create_task(anext(items))
            await until(lambda main=main, before=before: bool({*processes(running, main)} - {*before}))
            host = processes(running, "PitHost")
            waiting.cancel()
            await asyncio.wait([waiting])
        assert processes(running, main) == before
    results = await results_of(shop, [killed, endless])
    assert results["14 NegateConditionals"].killed_by == ("example.stock.StockTest.aPriceIsKept",)
    assert results["23 Math"].status is Status.TIMEOUT
    assert processes(running, "PitHost") == host


async def test_mutants_share_a_jvm_but_nothing_that_one_has_left(shop: Pit, running: RunningProcesses) -> None:
    mutants = {key(mutant): mutant for mutant in await discovered(shop, RATES)}
    testers = []
    for name, status in RATES_VERDICTS.items():
        [result] = (await results_of(shop, [mutants[name]])).values()
        assert (name, result.status) == (name, status)
        testers.append(processes(running, "Tester"))
    assert testers[0] == testers[1] != []
    assert len(testers[2]) == len(testers[1]) - 1  # a thread is left: the JVM is of no more use


async def test_the_error_that_ends_a_test_is_known_to_the_user(shop: Pit) -> None:
    mutant = next(mutant for mutant in await discovered(shop, RATES) if key(mutant) == "17 Math")
    await results_of(shop, [mutant])
    async with shop._modules._builds.current() as build:
        host = await build.host(next(module for module in build.modules if module.name == "stock"))
    arguments, known = await host._arguments(mutant.handle.key), host._testers
    assert arguments
    assert known
    launch = evolve(known.launch, argv=(*known.launch.argv[:-2], "/nowhere", "/nowhere"))
    testers = evolve(known, launch=launch)
    answer = await testers.test(arguments)
    await testers.close()
    assert "status" not in answer
    assert answer["error"].startswith("java.lang.ClassNotFoundException: example.stock.RatesTest (at java.")


@pytest.mark.usefixtures("portable")
async def test_a_red_suite_is_named(tmp_path: Path, pit_tools: Path) -> None:
    test = smallest(tmp_path) / "src/test/java/f/FTest.java"
    test.write_text(test.read_text("utf-8").replace("assertEquals(2,", "assertEquals(9,"), "utf-8")
    async with adapter_on(tmp_path / "project", pit_tools) as adapter:
        mutants = await discovered(adapter)
        with pytest.raises(BaselineError, match="FTest") as caught:
            await results_of(adapter, mutants)
    assert caught.value.remedy.startswith(
        "make `mvn test` pass, and leave out what fails in PIT alone, by excludedTest"
    )
    assert caught.value.failing == ("f.FTest.f",)


@pytest.mark.parametrize("real", [False, True], ids=["a script", "Maven"])
async def test_a_compile_error_is_named(tmp_path: Path, pit_tools: Path, real: bool) -> None:
    files = {path: text.replace("(2,", "(2 -,") for path, text in SMALLEST.items()}
    root = written(tmp_path / "project", {**files, "pom.xml": pit_pom()})
    if not real:
        program(root / "mvnw", NO_COMPILER)
    await refusal(
        adapter_on(root, pit_tools), ToolError, r"`mvn test-compile` fails: src/test/java/f/FTest.java:\[6,42\] illegal"
    )


async def test_verdicts_are_those_of_pit_and_what_is_computed_once_is_computed_with_the_mutant(shop: Pit) -> None:
    """PIT's plug-in for JUnit 5 runs the test before the mutant is in the class: Maven's own run decides there.

    A test that does not run the mutant kills two of them, one of which only after the test that does.
    """
    mutants = await discovered(shop, PRICE, LAZY)
    mutants = [mutant for mutant in mutants if mutant.path == LAZY or mutant.location.start.line == 8]
    results = await results_of(shop, mutants)
    assert results["14 EmptyObjectReturnVals"].killed_by == ("example.price.LazyTest.greets()",)
    assert results["14 EmptyObjectReturnVals"].covered_by == ("example.price.FirstTest.greetsAndLeaves()",)
    assert results["24 Math"].killed_by == ("example.price.LazyTest.nobodyIsThere()",)
    right, survivor = results["8 Math"], results["8 Math (3)"]
    fresh = FreshTool(shop)
    known = await fresh.verdicts(list(results.values()))
    checked = await fresh.compare(list(results.values()), known=known)
    assert (checked.checked, checked.differences, checked.unsteady) == (len(results), (), ())
    assert [known[each.mutant].status for each in (right, survivor)] == [Status.KILLED, Status.SURVIVED]
    assert known[right.mutant].reason == "killed by example.price.PriceTest.multiplies()"
    assert not fresh.agrees(Result(survivor.mutant, Status.KILLED), known[survivor.mutant])
