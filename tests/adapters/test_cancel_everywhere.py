"""A cancel at any await of an adapter's `discover` and `test` leaves no lock, no process and no temporary directory."""

import sys
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path

import pytest
from msp_bridge.adapters.cargo_mutants import CargoMutants
from msp_bridge.adapters.cosmic_ray import CosmicRay
from msp_bridge.adapters.generic import Generic
from msp_bridge.adapters.gremlins import Gremlins
from msp_bridge.adapters.mutmut import Mutmut
from msp_bridge.adapters.pit import Pit
from msp_bridge.adapters.stryker_js import StrykerJs
from msp_bridge.adapters.stryker_net import StrykerNet
from support import generic_trees, go_trees, java_trees, net_trees, rust_trees, stryker_js_trees
from support.cancelling import cancelled_everywhere
from support.files import written

from msp_bridge.adapter import Adapter, Mutant, Project, Result, Scope

Prepare = Callable[[Path, pytest.MonkeyPatch], Project]


def cargo_mutants(directory: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    rust_trees.stand_in(directory, monkeypatch)
    return Project(root=rust_trees.copied("rust_stand_in", directory), cache=directory / "cache")


def generic(directory: Path, _: pytest.MonkeyPatch) -> Project:
    root = generic_trees.copied(directory)
    tables = {"prices": generic_trees.settings(root)["prices"]}
    return Project(root=root, cache=directory / "cache", settings=tables)


def stryker_js(directory: Path, _: pytest.MonkeyPatch) -> Project:
    """With a scripted server: the real one takes a second to start, and is cancelled at some hundred awaits."""
    root = stryker_js_trees.copied("js_mocha", directory, None)
    tested = "send({ method: 'reportMutationTestProgress', params: { files: { 'lib/price.js': "
    tested += "{ mutants: [{ ...mutant, status: 'Killed' }] } } } }); return { files: {} }"
    stryker_js_trees.scripted_core(root / "node_modules", stryker_js_trees.SERVER.replace("ON_TEST", tested))
    return Project(root=root, cache=directory / "cache")


def stryker_net(directory: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """With the scripted dotnet, for the same reason."""
    net_trees.scripted_dotnet(directory, monkeypatch)
    return Project(root=net_trees.copied("net_calc", directory), cache=directory / "cache")


def gremlins(directory: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """The real one, on the smallest module that has a test."""
    monkeypatch.setenv("PATH", go_trees.PROGRAMS)
    test = 'import "testing"\n\nfunc TestF(t *testing.T) {\n\tif F(1) != 2 {\n\t\tt.Fatal()\n\t}\n}\n'
    files = {
        "go.mod": "module example.com/f\n\ngo 1.20\n",
        "f.go": "package f\n\nfunc F(a int) int { return a + 1 }\n",
        "f_test.go": f"package f\n\n{test}",
    }
    root = written(directory / "project", files)
    return Project(root=root, cache=directory / "cache")


def pit(directory: Path, _: pytest.MonkeyPatch) -> Project:
    """The real one and its JVMs, with a script in the place of Maven."""
    root = java_trees.smallest(directory)
    return Project(root=root, cache=directory / "cache")


def python(configuration: str) -> Prepare:
    """Of a Python tool, on the smallest project that has a test."""

    def prepare(directory: Path, _: pytest.MonkeyPatch) -> Project:
        files = {
            "pkg/__init__.py": "def f(a):\n    return a + 1\n",
            "test_f.py": "from pkg import f\n\ndef test_f():\n    assert f(1) == 2\n",
            "cosmic-ray.toml" if "cosmic-ray" in configuration else "pyproject.toml": configuration,
        }
        root = written(directory / "project", files)
        return Project(root=root, cache=directory / "cache", python=Path(sys.executable))

    return prepare


SOME = 13  # in the main ring, a cancel at each thirteenth await
MUTMUT = '[tool.mutmut]\nsource_paths = ["pkg"]\n'
COSMIC_RAY = '[cosmic-ray]\nmodule-path = "pkg"\ntimeout = 60\ntest-command = "python -m pytest -x -q"\n'
CASES: dict[str, tuple[type[Adapter], Prepare]] = {
    "cargo-mutants": (CargoMutants, cargo_mutants),
    "generic": (Generic, generic),
    "gremlins": (Gremlins, gremlins),
    "pit": (Pit, pit),
    "stryker-js": (StrykerJs, stryker_js),
    "stryker-net": (StrykerNet, stryker_net),
    "mutmut": (Mutmut, python(MUTMUT)),
    "cosmic-ray": (CosmicRay, python(COSMIC_RAY)),
    "cosmic-ray by a command": (CosmicRay, python(COSMIC_RAY.replace("python -m pytest -x -q", "sh -c 'pytest -q'"))),
}


MARKS = {"gremlins": go_trees.needs_gremlins, "pit": java_trees.needs_pit}


@pytest.mark.parametrize("name", [pytest.param(name, marks=MARKS.get(name, ())) for name in CASES])
async def test_a_cancel_at_any_await_leaves_nothing(
    name: str, every_case: bool, tmp_path: Path, pit_tools: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java_trees.cache_with(pit_tools, tmp_path)
    adapter_class, prepare = CASES[name]
    project = prepare(tmp_path, monkeypatch)

    async def work() -> None:
        async with aclosing(adapter_class(project)) as adapter:
            async with aclosing(adapter.discover(Scope())) as found:
                mutants = [mutant async for mutant in found if isinstance(mutant, Mutant)][:1]
            async with aclosing(adapter.test(mutants)) as results:
                assert [item.mutant async for item in results if isinstance(item, Result)] == mutants

    step = 1 if every_case else SOME
    assert await cancelled_everywhere(work, tmp_path / "cache", step) >= 5
