"""Adapters that ship with the bridge pass the conformance suite that any adapter can run."""

import os
import shutil
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from msp_bridge.adapters.cosmic_ray import CosmicRay
from msp_bridge.adapters.generic import Generic
from msp_bridge.adapters.mutmut import Mutmut
from msp_bridge.adapters.stryker_js import StrykerJs
from msp_bridge.adapters.stryker_net import StrykerNet
from support import cosmic_ray_trees, generic_trees, net_trees, stryker_js_trees
from support.adapters import project_at

from msp_bridge.adapter import Adapter, Project
from msp_bridge.testing import check_adapter

EXAMPLES = Path(__file__).parents[2] / "examples"


def python(root: Path) -> Project:
    return Project(root=root, cache=root.parent / "cache", python=Path(sys.executable), jobs=2)


def mutmut(to: Path, _: pytest.MonkeyPatch) -> Project:
    return python(Path(shutil.copytree(EXAMPLES / "shop", to / "shop")))


def cosmic_ray(tree: str, to: Path, _: pytest.MonkeyPatch) -> Project:
    return python(cosmic_ray_trees.copied(tree, to))


def generic(chosen: list[str], to: Path, _: pytest.MonkeyPatch) -> Project:
    """With a tool that edits the files that it mutates."""
    root = generic_trees.copied(to)
    tables = {name: generic_trees.settings(root)[name] for name in chosen}
    return Project(root=root, cache=to / "cache", settings=tables, jobs=2)


def stryker_js(modules: Path, isolated: bool, jobs: int, to: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    if not isolated:
        monkeypatch.setenv("MSP_BRIDGE_ISOLATION", "off")
    return project_at(stryker_js_trees.copied("js_mocha", to, modules), jobs=jobs)


def stryker_net(tree: str, to: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """With the scripted dotnet."""
    net_trees.scripted_dotnet(to, monkeypatch)
    if tree == "net_repo":
        monkeypatch.setenv("PATH", str(net_trees.SDK / "tools"), prepend=os.pathsep)
    return Project(root=net_trees.copied(tree, to), cache=to / "cache", jobs=2)


Make = Callable[[Path, pytest.MonkeyPatch], Project]
CASES: dict[str, tuple[type[Adapter], Make, int]] = {  # how many mutants are tested in each check
    "mutmut": (Mutmut, mutmut, 12),
    **{tree: (CosmicRay, partial(cosmic_ray, tree), 4) for tree in ("cr_flat", "cr_src")},
    "generic, two tools": (Generic, partial(generic, ["prices", "texts"]), 5),
    "generic, one tool": (Generic, partial(generic, ["prices"]), 5),
    "StrykerJS, served": (StrykerJs, partial(stryker_js, stryker_js_trees.CORE9, True, 2), 3),
    "StrykerJS, served, portable": (StrykerJs, partial(stryker_js, stryker_js_trees.CORE9, False, 2), 3),
    "StrykerJS, command line": (StrykerJs, partial(stryker_js, stryker_js_trees.CORE8, True, 1), 3),
    **{tree: (StrykerNet, partial(stryker_net, tree), 6) for tree in ("net_calc", "net_repo")},
}


@pytest.mark.parametrize("case", CASES)
async def test_the_adapter_keeps_its_promises(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    adapter, make, sample = CASES[case]
    await check_adapter(adapter, make(tmp_path, monkeypatch), sample=sample)
