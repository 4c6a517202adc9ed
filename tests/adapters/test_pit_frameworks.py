"""PIT's mutants with TestNG, and in Kotlin: small projects, with the real Maven and PIT."""

from pathlib import Path

import pytest
from msp_bridge.adapters.pit.host import Host
from support.adapters import discovered
from support.files import written
from support.java_trees import adapter_on, needs_pit, pit_pom, processes, results_of, skipped_where_unreachable

from msp_bridge.adapter import Status
from msp_bridge.testing import RunningProcesses

pytestmark = needs_pit
TESTNG = """<dependency><groupId>org.testng</groupId><artifactId>testng</artifactId><version>7.10.2</version>
<scope>test</scope></dependency>"""
OF_TESTNG = """<dependencies><dependency><groupId>org.pitest</groupId><artifactId>pitest-testng-plugin</artifactId>
<version>1.0.0</version></dependency></dependencies>"""
CART, CART_TEST = "src/main/java/example/Cart.java", "src/test/java/example/CartTest.java"
IN_JAVA = {
    CART: """package example;

public class Cart {
    private int total;

    public void add(int price) {
        if (price < 0) {
            throw new IllegalArgumentException("negative");
        }
        total += price;
    }

    public int total() {
        return total > 100 ? total - 10 : total;
    }

    @DoNotMutate
    public int twice() {
        return total * 2;
    }
}
""",
    "src/main/java/example/DoNotMutate.java": "package example;\n\n@interface DoNotMutate {}\n",
    CART_TEST: """package example;

import static org.testng.Assert.assertEquals;

import java.nio.file.Files;
import java.nio.file.Path;
import org.testng.annotations.BeforeMethod;
import org.testng.annotations.DataProvider;
import org.testng.annotations.Test;

public class CartTest {
    private Cart cart;

    @BeforeMethod
    public void fresh() throws Exception {
        cart = new Cart();
        Path begun = Path.of("begun-" + ProcessHandle.current().pid());
        if (System.getProperty("sun.java.command").startsWith("Tester") && !Files.exists(begun)) {
            Files.createFile(begun);
            Thread.sleep(5000); // as a cold start on a busy machine: longer than PIT's time limit
        }
    }

    @DataProvider
    public Object[][] prices() {
        return new Object[][] {{1, 2, 3}, {50, 60, 100}};
    }

    @Test(dataProvider = "prices")
    public void adds(int first, int second, int expected) {
        cart.add(first);
        cart.add(second);
        assertEquals(cart.total(), expected);
    }

    @Test(expectedExceptions = IllegalArgumentException.class)
    public void negative() {
        cart.add(-1);
    }
}
""",
}
KOTLIN = """<dependency><groupId>org.jetbrains.kotlin</groupId><artifactId>kotlin-stdlib</artifactId><version>2.0.21</version>
</dependency><dependency><groupId>junit</groupId><artifactId>junit</artifactId><version>4.13.2</version><scope>test</scope>
</dependency>"""
KOTLIN_PLUGIN = """<plugin><groupId>org.jetbrains.kotlin</groupId><artifactId>kotlin-maven-plugin</artifactId><version>2.0.21</version>
<executions><execution><id>compile</id><goals><goal>compile</goal></goals></execution>
<execution><id>test-compile</id><goals><goal>test-compile</goal></goals></execution></executions></plugin>"""
PRICES, PRICES_TEST = "src/main/kotlin/example/Prices.kt", "src/test/kotlin/example/PricesTest.kt"
IN_KOTLIN = {
    PRICES: """package example

inline fun <T> last(times: Int, block: (Int) -> T): T? {
    var last: T? = null
    for (each in 0 until times) {
        last = block(each)
    }
    return last
}

data class Price(val amount: Int) {
    operator fun plus(other: Price) = Price(amount + other.amount)

    val isDear get() = amount > 1000
}

fun steps(count: Int): Int = last(count) { it + 1 } ?: 0
""",
    PRICES_TEST: """package example

import org.junit.Assert.assertEquals
import org.junit.Assert.assertTrue
import org.junit.Test

class PricesTest {
    @Test
    fun `adds two prices`() = assertEquals(Price(30), Price(10) + Price(20))

    @Test
    fun dear() = assertTrue(Price(2000).isDear)

    @Test
    fun counts() = assertEquals(3, steps(3))
}
""",
}
JUPITER = """<dependency><groupId>org.junit.jupiter</groupId><artifactId>junit-jupiter</artifactId><version>5.10.2</version>
<scope>test</scope></dependency>"""
OF_JUPITER = """<dependencies><dependency><groupId>org.pitest</groupId><artifactId>pitest-junit5-plugin</artifactId>
<version>1.2.1</version></dependency></dependencies>"""
ENDING = """package example;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Test;

class {name} {{
    @AfterAll
    static void ends() {{
        assertEquals(3, Counts.{method}(2));
    }}

    @Test
    void passes() {{}}
}}
"""
AFTER_ALL = {
    "src/main/java/example/Counts.java": """package example;

class Counts {
    static int first(int a) {
        return a + 1;
    }

    static int last(int a) {
        return a + 1;
    }

    static int never(int a) {
        return a + 1;
    }
}
""",
    "src/test/java/example/ATest.java": ENDING.format(name="ATest", method="first"),
    "src/test/java/example/ZTest.java": ENDING.format(name="ZTest", method="last"),
}


async def test_mutants_that_tests_of_testng_kill_name_the_method_and_share_a_jvm(
    tmp_path: Path, pit_tools: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first of them does not take the time in which this JVM starts."""
    alone = list[str]()
    monkeypatch.setattr(Host, "_test_alone", lambda _, key: alone.append(key))
    root, running = (
        written(tmp_path / "project", {"pom.xml": pit_pom(TESTNG, OF_TESTNG), **IN_JAVA}),
        RunningProcesses(),
    )
    async with adapter_on(root, pit_tools, jobs=1) as adapter:
        with skipped_where_unreachable():
            mutants = await discovered(adapter)
        results = await results_of(adapter, mutants)
        assert len(processes(running, "Tester")) == 1
    assert alone == []
    assert {name: (result.status, result.killed_by) for name, result in results.items()} == {
        "7 ConditionalsBoundary": (Status.SURVIVED, None),
        "7 NegateConditionals": (Status.KILLED, ("example.CartTest.adds",)),
        "10 Math": (Status.KILLED, ("example.CartTest.adds",)),
        "14 ConditionalsBoundary": (Status.SURVIVED, None),
        "14 Math": (Status.KILLED, ("example.CartTest.adds",)),
        "14 NegateConditionals": (Status.KILLED, ("example.CartTest.adds",)),
        "14 PrimitiveReturns": (Status.KILLED, ("example.CartTest.adds",)),
    }
    assert {result.covered_by for result in results.values()} == {("example.CartTest",)}


async def test_mutants_in_kotlin_have_their_lines_also_in_code_that_is_inlined(tmp_path: Path, pit_tools: Path) -> None:
    pom = pit_pom(KOTLIN, plugins=KOTLIN_PLUGIN, language="kotlin")
    root = written(tmp_path / "project", {"pom.xml": pom, **IN_KOTLIN})
    async with adapter_on(root, pit_tools, jobs=1) as adapter:
        with skipped_where_unreachable():
            mutants = await discovered(adapter, PRICES)
        results = await results_of(adapter, [each for each in mutants if each.location.start.line > 10])
    verdicts = {name: (result.status, result.killed_by) for name, result in results.items()}
    assert verdicts["12 Math"] == (Status.KILLED, ("example.PricesTest.adds two prices",))
    assert verdicts["14 ConditionalsBoundary"] == (Status.SURVIVED, None)
    assert verdicts["17 Math"] == (Status.KILLED, ("example.PricesTest.counts",))
    texts = (root / PRICES).read_text("utf-8").split("\n")
    for mutant in mutants:
        start, end = mutant.location.start, mutant.location.end
        assert start.line == end.line
        assert texts[start.line - 1][start.column - 1 : end.column - 1] == texts[start.line - 1].strip()


async def test_what_junit_5_runs_after_all_tests_of_a_class_has_verdicts(tmp_path: Path, pit_tools: Path) -> None:
    root = written(tmp_path / "project", {"pom.xml": pit_pom(JUPITER, OF_JUPITER), **AFTER_ALL})
    async with adapter_on(root, pit_tools, jobs=1) as adapter:
        with skipped_where_unreachable():
            mutants = await discovered(adapter)
        results = await results_of(adapter, [each for each in mutants if each.mutator == "MathMutator"])
    assert {name: (result.status, result.killed_by) for name, result in results.items()} == {
        "5 Math": (Status.KILLED, ("example.ATest",)),
        "9 Math": (Status.KILLED, ("example.ZTest",)),
        "13 Math": (Status.NO_COVERAGE, None),
    }
