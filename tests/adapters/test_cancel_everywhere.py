"""A cancel at any await of an adapter leaves no lock, no process and no temporary directory; a kill no process and no change."""

import asyncio
import random
from contextlib import aclosing
from pathlib import Path

import pytest
from attrs import evolve
from msp_bridge.adapters.cargo_mutants import CargoMutants
from msp_bridge.adapters.cosmic_ray import CosmicRay
from msp_bridge.adapters.generic import Generic
from msp_bridge.adapters.gremlins import Gremlins
from msp_bridge.adapters.mutmut import Mutmut
from msp_bridge.adapters.pit import Pit
from msp_bridge.adapters.stryker_js import StrykerJs
from msp_bridge.adapters.stryker_net import StrykerNet
from support import go_trees, java_trees
from support.adapters import discovered, results_of
from support.cancelling import cancelled_everywhere
from support.every_adapter import PYTHON, Case, Make, cases, generic, on, scripted_dotnet, stand_in_for_cargo
from support.files import written
from support.killed_bridges import killed_bridge
from support.stryker_js_trees import KILLS, scripted

from msp_bridge.adapter import Mutant, Status

SOME = 101  # in the main ring, a cancel at each 101st await from a random one on
BUILT = {"gremlins": 4, "pit": 3}  # elsewhere at each fourth or third of these, whose work compiles anew each time
TEST_IN_GO = """package f

import "testing"

func TestF(t *testing.T) {
	if F(1) != 2 {
		t.Fatal()
	}
}
"""
IN_GO = {
    "go.mod": "module example.com/f\n\ngo 1.20\n",
    "f.go": "package f\n\nfunc F(a int) int { return a + 1 }\n",
    "f_test.go": TEST_IN_GO,
}
IN_PYTHON = {
    "pkg/__init__.py": "def f(a):\n    return a + 1\n",
    "test_f.py": "from pkg import f\n\ndef test_f():\n    assert f(1) == 2\n",
}
MUTMUT = '[tool.mutmut]\nsource_paths = ["pkg"]\n'
COSMIC_RAY = '[cosmic-ray]\nmodule-path = "pkg"\ntimeout = 60\ntest-command = "python -m pytest -x -q"\n'


def python(file: str, configuration: str) -> Make:
    return on(lambda to: written(to / "project", {**IN_PYTHON, file: configuration}), python=PYTHON)


# The smallest project that has a test. Of StrykerJS, Stryker.NET and cargo a script does what some hundred starts would take too long.
SMALL = {
    "cargo-mutants": Case(CargoMutants, stand_in_for_cargo),
    "generic": Case(Generic, generic("prices")),
    "gremlins": Case(
        Gremlins,
        on(lambda to: written(to / "project", IN_GO), {"PATH": go_trees.PROGRAMS}),
        marks=go_trees.needs_gremlins,
    ),
    "pit": Case(Pit, on(java_trees.smallest), marks=java_trees.needs_pit),
    "stryker-js": Case(StrykerJs, on(lambda to: scripted(to, KILLS))),
    "stryker-net": Case(StrykerNet, scripted_dotnet("net_calc")),
    "mutmut": Case(Mutmut, python("pyproject.toml", MUTMUT)),
    "cosmic-ray": Case(CosmicRay, python("cosmic-ray.toml", COSMIC_RAY)),
}


@cases(of=SMALL)
async def test_a_cancel_at_any_await_leaves_nothing(
    name: str, every_case: bool, tmp_path: Path, pit_tools: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, case = java_trees.cache_with(pit_tools, tmp_path), SMALL[name]
    project = evolve(case.made(tmp_path, monkeypatch), jobs=1)

    async def work() -> None:
        async with aclosing(case.adapter(project)) as adapter:
            mutants = (await discovered(adapter))[:1]
            assert [result.mutant for result in await results_of(adapter, mutants, [])] == mutants

    step = BUILT.get(name, 1) if every_case else SOME
    assert await cancelled_everywhere(work, cache, step) >= 5


@cases(of=SMALL)
async def test_a_killed_bridge_leaves_no_process_and_a_cache_in_which_the_next_one_says_the_same(
    name: str, every_case: bool, tmp_path: Path, pit_tools: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = SMALL[name]
    project = case.made(tmp_path, monkeypatch)

    async def statuses(place: Path) -> dict[Mutant, Status]:
        place.mkdir(exist_ok=True)
        here = evolve(project, cache=java_trees.cache_with(pit_tools, place))
        async with aclosing(case.adapter(here)) as adapter:
            mutants = await discovered(adapter)
            found = {result.mutant: result.status for result in await results_of(adapter, mutants, [])}
        assert found.keys() == set(mutants)
        return found

    undisturbed = await statuses(tmp_path / "undisturbed")
    java_trees.cache_with(pit_tools, tmp_path)
    for results in (0, 1) if every_case else (1,):
        async with killed_bridge(case.adapter, project) as bridge:
            for _ in range(results):
                await bridge.line()
            await asyncio.sleep(random.Random(results).uniform(0, 0.4))
        assert await statuses(tmp_path) == undisturbed
