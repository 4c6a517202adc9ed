"""The real Stryker.NET prepares: conformance, edits, red tests, and kills meanwhile. Beside `test_stryker_net_real`."""

import asyncio
import os
import random
import socket
from pathlib import Path

import pytest
from msp_bridge.adapters.stryker_net import StrykerNet
from support.adapters import discovered, project_at, refusal
from support.killed_bridges import killed_bridge
from support.net_projects import EXAMPLE, KEPT, KEPT_TESTS, PAIR, PAIR_TESTS, REAL, SHOP, SHOP_TESTS, laid_out
from support.net_trees import adapter_on, kill, of, outcomes, results_of
from support.projects import copied
from support.servers import until

from msp_bridge.adapter import BaselineError, Notice, ToolError
from msp_bridge.testing import RunningProcesses

pytestmark = [REAL, pytest.mark.timeout(1800)]
THE_TOOL = r"\S*dotnet[- ]\S*stryker"


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the example, for all tests: each finds what the one before it has prepared and built."""
    return copied(EXAMPLE, tmp_path_factory.mktemp("net"))


@pytest.fixture
def shop(prepared: Path) -> Path:
    """The copy as the example is, whatever a test before has edited."""
    for name in (SHOP, SHOP_TESTS, "stryker-config.json"):
        if (EXAMPLE / name).exists():
            (prepared / name).write_text((EXAMPLE / name).read_text())
        else:
            (prepared / name).unlink(missing_ok=True)
    return prepared


async def test_mutants_get_the_verdicts_of_their_tests(shop: Path) -> None:
    async with adapter_on(shop, jobs=2) as adapter:
        mutants = await discovered(adapter)
        killed, survivor = of(mutants, "price + price * percent / 100"), of(mutants, "sum > FreeShippingFrom")
        results = await results_of(adapter, [killed, survivor])
    assert {(result.mutant, result.status.value) for result in results} == {(killed, "Killed"), (survivor, "Survived")}


async def test_edits_of_code_and_tests_and_red_tests_are_seen(
    shop: Path, temporary: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with adapter_on(shop, jobs=2) as adapter:
        weak = of(await discovered(adapter), "sum > FreeShippingFrom")
    text = (shop / SHOP_TESTS).read_text()
    red = "[Fact] public void Red() => Assert.Equal(1, Cart.Total(1, 1));"
    green = "[Fact] public void Exact() => Assert.Equal(50, Cart.Total(50, 1));"
    (shop / SHOP_TESTS).write_text(text.rstrip().removesuffix("}") + f"{red} {green} }}\n")
    os.utime(shop / SHOP_TESTS, (0, 0))  # for MSBuild older than what it has built
    (shop / SHOP).write_text("// a line above\n" + (shop / SHOP).read_text())
    async with adapter_on(shop, jobs=2) as adapter:
        mutants = await discovered(adapter)
        notices: list[Notice] = []
        for _ in range(2):
            [result] = await results_of(adapter, [of(mutants, "sum > FreeShippingFrom")], notices=notices)
    assert result.mutant.location.start.line == weak.location.start.line + 1
    assert (result.status.value, result.killed_by) == ("Killed", ("Shop.Tests.CartTests.Exact",))
    assert not result.reusable
    assert [notice.test for notice in notices] == ["Shop.Tests.CartTests.Red"] * 2
    assert list(temporary.iterdir()) == []


async def test_tests_that_share_static_fields_decide_together(tmp_path: Path) -> None:
    """One test computes what the next one finds, and one needs what the one before it has left."""
    root = laid_out(tmp_path / "project", {"Kept": KEPT}, {"nunit": KEPT_TESTS})
    async with adapter_on(root) as adapter:
        mutants = await discovered(adapter)
        chosen = [of(mutants, "n / n"), of(mutants, "sum >= 100"), of(mutants, "sum < 100")]
        results = await results_of(adapter, chosen)
    assert outcomes(results) == {
        ("Kept.cs", "n / n", "Killed"),
        ("Kept.cs", "sum >= 100", "Survived"),
        ("Kept.cs", "sum < 100", "Killed"),
    }


async def test_tests_that_keep_the_tool_from_testing_are_named(shop: Path) -> None:
    (shop / "stryker-config.json").write_text('{"stryker-config": {"break-on-initial-test-failure": true}}')
    red = '[Fact] public void Red() => Assert.Equal("a longer line than the console of the tool has columns", "b");'
    (shop / SHOP_TESTS).write_text((EXAMPLE / SHOP_TESTS).read_text().rstrip().removesuffix("}") + f"{red} }}\n")
    error = await refusal(adapter_on(shop), BaselineError)
    assert error.failing == ("Shop.Tests.CartTests.Red",)
    assert "Strings differ" in error.first_failure


async def test_code_that_does_not_compile_is_one_clear_sentence(shop: Path) -> None:
    (shop / SHOP).write_text((EXAMPLE / SHOP).read_text().replace("price * quantity;", "price * ;"))
    error = await refusal(adapter_on(shop), ToolError)
    assert "src/Shop/Cart.cs(10,27): error CS1525" in error.problem
    assert error.problem.count("CS1525") == 1
    assert error.remedy == "fix what `dotnet build` shows"


async def test_a_tool_or_a_bridge_that_is_killed_while_it_prepares_leaves_nothing(
    tmp_path: Path, temporary: Path
) -> None:
    root = laid_out(tmp_path / "project", {"Pair": PAIR}, {"xunit": PAIR_TESTS})
    before = dead_sockets()
    async with adapter_on(root) as adapter:
        preparing = asyncio.create_task(discovered(adapter))
        await kill(RunningProcesses(), THE_TOOL)
        with pytest.raises(ToolError, match="killed"):
            await preparing
    async with killed_bridge(StrykerNet, project_at(root)):
        await asyncio.sleep(random.Random(1).uniform(2, 12))
    assert list(temporary.iterdir()) == []
    async with adapter_on(root, settings={"engine": "tool"}) as adapter:  # in the same copy
        results = await results_of(adapter, await discovered(adapter))
    assert outcomes(results) >= {("Pair.cs", "a + b", "Killed"), ("Pair.cs", "a / b", "Survived")}
    # one of another test is there for a moment between the end of its server and its own
    await until(lambda: dead_sockets() <= before)


def dead_sockets() -> set[Path]:
    """Those of compilers' servers that have ended: they are in /tmp, whatever TMPDIR is."""
    return {file for file in Path("/tmp").glob("msp-bridge-*") if file.is_socket() and is_dead(file)}


def is_dead(file: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(str(file))
        except ConnectionRefusedError:
            return True
        except FileNotFoundError:
            return False
    return False
