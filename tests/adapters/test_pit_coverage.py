"""What PIT's tests cover, kept over edits and for the next bridge: what is measured again, seen by what the tests note."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from msp_bridge.adapters.pit import Pit
from support.java_trees import adapter_on, copied, discovered, key, needs_pit, results_of

from msp_bridge.adapter import Result, Status

pytestmark = needs_pit
SOURCES, TESTS = "stock/src/main/java/example/stock", "stock/src/test/java/example/stock"
CODE = """package example.stock;

final class {name} {{
    private static Integer known;

    static int twice(int price) {{
        return price * 2;
    }}

    static int once() {{
        if (known == null) {{
            known = made(3);
        }}
        return known;
    }}

    static int made(int price) {{
        return price + 1;
    }}

    static int never(int price) {{
        return price - 1;
    }}

    private static final int FACTOR = factor();

    private static int factor() {{
        return 2;
    }}
}}
"""
TEST = """package example.stock;

import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import org.junit.Assert;
import org.junit.Test;

public class {name} {{
    @Test
    public void passes() throws Exception {{
        Files.writeString(Path.of("{runs}"), "{name} ", StandardOpenOption.CREATE, StandardOpenOption.APPEND);
        {body}
        System.setProperty("ran", "yes");
    }}
}}
"""
DIRECT = "Assert.assertEquals(8, {0}.twice(4));"
ONCE = "Assert.assertEquals(4, {0}.once());"
READS = """Files.readString(Path.of("src", "main", "java", "example", "stock", "Rates.java"));"""
WAITS = """for (int tries = 0; !Files.exists(Path.of("{gate}")); tries++) {{
            Assert.assertTrue(tries < 2000);
            Thread.sleep(20);
        }}
        Rates.twice(4);"""
LISTS = """Files.list(Path.of("src")).forEach(any -> {});"""
AFTER_OTHERS = """Assert.assertEquals("yes", System.getProperty("ran"));"""
CONSTANT = """Class.forName("example.stock.Fees");"""
STREAM = """java.io.ByteArrayOutputStream bytes = new java.io.ByteArrayOutputStream();
        new java.io.ObjectOutputStream(bytes).writeObject("text");
        new java.io.ObjectInputStream(new java.io.ByteArrayInputStream(bytes.toByteArray())).readObject();"""
NAMED = """Class.forName(String.join(".", "example.stock", "Fees")).getDeclaredMethod("once").invoke(null);"""


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tools")


def written(root: Path, runs: Path, tests: dict[str, str]) -> None:
    for name in ("Rates", "Fees"):
        (root / SOURCES / f"{name}.java").write_text(CODE.format(name=name), "utf-8")
    for name, body in tests.items():
        (root / TESTS / f"{name}.java").write_text(TEST.format(name=name, runs=runs, body=body), "utf-8")


async def verdict(adapter: Pit, name: str, mutant: str) -> Result:
    mutants = {key(mutant): mutant for mutant in await discovered(adapter, f"{SOURCES}/{name}.java")}
    [result] = (await results_of(adapter, [mutants[mutant]])).values()
    return result


async def test_only_what_can_run_what_has_changed_is_measured_again(tmp_path: Path, tools: Path) -> None:
    root, runs = copied(tmp_path), tmp_path / "runs"
    direct = {f"{name}Test": DIRECT.format(name) for name in ("Rates", "Fees")}
    tied = {"NamedTest": NAMED, "ReadsTest": READS, "ListsTest": LISTS}  # to each file
    written(root, runs, {**direct, **tied, "ConstantTest": CONSTANT, "StreamTest": STREAM})

    async def measured(adapter: Pit) -> list[str]:
        runs.write_text("", "utf-8")
        assert (await verdict(adapter, "Fees", "22 Math")).status is Status.NO_COVERAGE
        return runs.read_text("utf-8").split()

    async with adapter_on(root, tools) as adapter:
        order = await measured(adapter)
        assert set(order) == {*direct, *tied, "ConstantTest", "StreamTest"}
    async with adapter_on(root, tools) as adapter:
        assert await measured(adapter) == []
    rates = root / SOURCES / "Rates.java"
    rates.write_text(rates.read_text("utf-8").replace("price * 2", "price * 2 + 0 * price"), "utf-8")
    async with adapter_on(root, tools) as adapter:
        assert await measured(adapter) == [name for name in order if name in {"RatesTest", *tied}]
        result = await verdict(adapter, "Fees", "7 Math")
        assert (result.status, result.killed_by) == (Status.KILLED, ("example.stock.FeesTest.passes",))
    rates.write_text(rates.read_text("utf-8").replace("Rates {", "Rates implements java.io.Serializable {"), "utf-8")
    async with adapter_on(root, tools) as adapter:
        assert await measured(adapter) == [name for name in order if name in {"RatesTest", "StreamTest", *tied}]


async def test_kills_do_not_wait_until_it_is_measured_what_an_edited_test_covers(tmp_path: Path, tools: Path) -> None:
    root, runs, gate = copied(tmp_path), tmp_path / "runs", tmp_path / "gate"
    written(root, runs, {f"{name}Test": DIRECT.format(name) for name in ("Rates", "Fees")})
    async with adapter_on(root, tools) as adapter:
        for name in ("Rates", "Fees"):
            assert (await verdict(adapter, name, "7 Math")).covered_by == (f"example.stock.{name}Test.passes",)
    written(root, runs, {"RatesTest": WAITS.format(gate=gate)})
    async with adapter_on(root, tools) as adapter:
        mutants = [mutant for mutant in await discovered(adapter) if key(mutant) == "7 Math"]
        async with contextlib.aclosing(adapter.test(mutants)) as items:
            first = await anext(items)
            gate.touch()
            [second] = [item async for item in items]
    assert isinstance(first, Result)
    assert isinstance(second, Result)
    assert (first.status, first.killed_by) == (Status.KILLED, ("example.stock.FeesTest.passes",))
    assert first.covered_by is None
    assert (second.status, second.covered_by) == (Status.SURVIVED, ("example.stock.RatesTest.passes",))


async def test_what_one_test_does_for_others_is_measured_without_it_and_with_it(tmp_path: Path, tools: Path) -> None:
    root, runs = copied(tmp_path), tmp_path / "runs"
    of_rates, of_fees = ("RatesTest", "OtherTest"), ("FeesTest", "MoreTest")
    written(
        root, runs, {**dict.fromkeys(of_rates, ONCE.format("Rates")), **dict.fromkeys(of_fees, DIRECT.format("Fees"))}
    )
    async with adapter_on(root, tools) as adapter:
        covered = (await verdict(adapter, "Rates", "18 Math")).covered_by
    order = [*dict.fromkeys(runs.read_text("utf-8").split())]  # a test that kills runs once more
    first, second = [name for name in order if name in of_rates]
    later = [name for name in order if name in of_fees][1]
    assert covered == (f"example.stock.{first}.passes",)  # PIT runs all in one JVM
    gone = (root / TESTS / f"{first}.java").read_text("utf-8")
    (root / TESTS / f"{first}.java").unlink()
    async with adapter_on(root, tools) as adapter:
        assert (await verdict(adapter, "Rates", "18 Math")).killed_by == (f"example.stock.{second}.passes",)
    (root / TESTS / f"{first}.java").write_text(gone, "utf-8")
    written(root, runs, {later: "Assert.assertEquals(10, Fees.twice(5));"})
    runs.write_text("", "utf-8")
    async with adapter_on(root, tools) as adapter:
        known = await verdict(adapter, "Rates", "22 Math")  # until it is, a kill may come first, without `covered_by`
        assert known.status is Status.NO_COVERAGE
        again = {*runs.read_text("utf-8").split()}
        assert again == {first, second, later}  # not the other one, which alone ran the static initializer of Fees
        assert (await verdict(adapter, "Rates", "18 Math")).covered_by == covered
    written(root, runs, {later: f"{AFTER_OTHERS} {DIRECT.format('Fees')}"})
    async with adapter_on(root, tools) as adapter:
        assert (await verdict(adapter, "Fees", "7 Math")).status is Status.KILLED
