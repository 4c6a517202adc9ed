"""What PIT's tests cover, kept over edits and for the next bridge: what is measured again, seen by what the tests note."""

import asyncio
from pathlib import Path

import pytest
from msp_bridge.adapters.pit import Pit
from msp_bridge.adapters.pit.host import Shared
from support import adapters
from support.adapters import discovered
from support.files import written
from support.java_trees import (
    SOURCES,
    TESTS,
    adapter_on,
    key,
    needs_pit,
    processes,
    results_of,
    stock,
    without_maven,
)

from msp_bridge.adapter import Result, Status
from msp_bridge.testing import RunningProcesses

NOTED = """Files.writeString(Path.of("{runs}"), "{name} ", StandardOpenOption.CREATE, StandardOpenOption.APPEND);
        {body}
        System.setProperty("ran", "yes");"""
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


def write(root: Path, runs: Path, tests: dict[str, str]) -> None:
    noted = {name: NOTED.format(name=name, runs=runs, body=body) for name, body in tests.items()}
    written(root, stock((), noted))


async def verdict(adapter: Pit, name: str, mutant: str) -> Result:
    mutants = {key(mutant): mutant for mutant in await discovered(adapter, f"{SOURCES}/{name}.java")}
    [result] = (await results_of(adapter, [mutants[mutant]])).values()
    return result


@needs_pit
async def test_only_what_can_run_what_has_changed_is_measured_again_and_what_it_did_for_others(
    tmp_path: Path, pit_tools: Path, every_case: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSP_BRIDGE_ISOLATION", "overlay,pid,ipc")  # of what is among temporary files all is seen here
    root = without_maven(written(tmp_path / "project", stock(("Rates", "Fees", "Stock", "Taxes"), {})))
    runs, gate, running = tmp_path / "runs", tmp_path / "gate", RunningProcesses()
    direct = {"RatesTest": WAITS.format(gate=gate), "FeesTest": DIRECT.format("Fees")}
    tied = {"NamedTest": NAMED, "ReadsTest": READS, "ListsTest": LISTS}  # to each file
    of_stock = dict.fromkeys(("StockTest", "OtherTest"), ONCE.format("Stock"))
    of_taxes = dict.fromkeys(("TaxesTest", "MoreTest"), DIRECT.format("Taxes"))
    every = {**direct, **tied, **of_stock, **of_taxes, "ConstantTest": CONSTANT, "StreamTest": STREAM}
    write(root, runs, every)
    gate.touch()

    async def measured(adapter: Pit) -> list[str]:
        runs.write_text("", "utf-8")
        assert (await verdict(adapter, "Fees", "22 Math")).status is Status.NO_COVERAGE
        return runs.read_text("utf-8").split()

    async with adapter_on(root, pit_tools) as adapter:
        order = await measured(adapter)
        covered = (await verdict(adapter, "Stock", "18 Math")).covered_by
    assert set(order) == every.keys()
    first, second = [name for name in order if name in of_stock]
    later = [name for name in order if name in of_taxes][1]
    assert covered == (f"example.stock.{first}.passes",)  # PIT runs all in one JVM
    rates = root / SOURCES / "Rates.java"
    text = rates.read_text("utf-8").replace("price * 2", "price * 2 + 0 * price")
    rates.write_text(text.replace("Rates {", "Rates implements java.io.Serializable {"), "utf-8")
    gate.unlink()
    async with adapter_on(root, pit_tools) as adapter:
        kill = await verdict(adapter, "Fees", "7 Math")  # nothing waits for what a test covers
        assert (kill.status, kill.killed_by) == (Status.KILLED, ("example.stock.FeesTest.passes",))
        assert kill.covered_by is None
        assert processes(running, "CoverageMinion")  # it is measured for the next request; here none comes
    gate.touch()
    async with adapter_on(root, pit_tools) as adapter:
        assert await measured(adapter) == [name for name in order if name in {"RatesTest", "StreamTest", *tied}]
        result = await verdict(adapter, "Rates", "7 Math")
        assert (result.status, result.covered_by) == (Status.SURVIVED, ("example.stock.RatesTest.passes",))
    if not every_case:
        return
    (root / TESTS / f"{first}.java").unlink()
    async with adapter_on(root, pit_tools) as adapter:
        assert (await verdict(adapter, "Stock", "18 Math")).killed_by == (f"example.stock.{second}.passes",)
    write(root, runs, {first: of_stock[first], later: "Assert.assertEquals(10, Taxes.twice(5));"})
    async with adapter_on(root, pit_tools) as adapter:
        # not the other test of `Taxes`, which alone ran its static initializer
        assert {*await measured(adapter)} == {first, second, later, *tied}
        assert (await verdict(adapter, "Stock", "18 Math")).covered_by == covered
    write(root, runs, {later: f"{AFTER_OTHERS} {DIRECT.format('Taxes')}"})
    async with adapter_on(root, pit_tools) as adapter:
        assert (await verdict(adapter, "Taxes", "7 Math")).status is Status.KILLED


@needs_pit
async def test_likely_tests_kill_before_all_are_measured_the_first_time(
    tmp_path: Path, pit_tools: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSP_BRIDGE_ISOLATION", "overlay,pid,ipc")
    root = without_maven(written(tmp_path / "project", stock(("Rates", "Fees", "Taxes"), {})))
    gate, running = tmp_path / "gate", RunningProcesses()
    # one has the mutated class in its name, the other uses it
    others = {f"Other{number}Test": "" for number in range(17)}
    of_mutants = {"ManyFeesTest": DIRECT.format("Fees"), "UsesTest": DIRECT.format("Taxes")}
    write(root, tmp_path / "runs", {"RatesTest": WAITS.format(gate=gate), **of_mutants, **others})
    async with adapter_on(root, pit_tools) as adapter:
        mutants = [mutant for mutant in await discovered(adapter) if key(mutant) == "7 Math"]
        chosen = [mutant for mutant in mutants if Path(mutant.path).stem in {"Fees", "Taxes"}]
        kills = await adapters.results_of(adapter, chosen)
        assert processes(running, "CoverageMinion")
        gate.touch()
        last = await verdict(adapter, "Rates", "7 Math")
    killing = {(f"example.stock.{name}.passes",) for name in of_mutants}
    assert {kill.killed_by for kill in kills} == killing
    assert {(kill.status, kill.covered_by) for kill in kills} == {(Status.KILLED, None)}
    assert (last.status, last.covered_by) == (Status.SURVIVED, ("example.stock.RatesTest.passes",))


async def test_an_answer_that_is_needed_no_more_comes_for_the_next_request_which_may_be_cancelled() -> None:
    asked, abandoned, answered = list[None](), list[None](), asyncio.Event()

    async def ask() -> str:
        asked.append(None)
        await answered.wait()
        return "it"

    async def abandon() -> None:
        abandoned.append(None)

    async def cancelled(*, needed: bool = True) -> None:
        request = asyncio.create_task(shared.answer())
        await asyncio.sleep(0)
        if not needed:
            shared.go_on()
        request.cancel()
        await asyncio.wait([request])

    shared = Shared(ask, abandon)
    await cancelled(needed=False)
    assert (shared.running, len(abandoned)) == (True, 0)
    await cancelled()
    assert len(abandoned) == 1
    await cancelled(needed=False)
    answered.set()
    assert await shared.answer() == "it"
    assert (len(asked), len(abandoned)) == (1, 1)
