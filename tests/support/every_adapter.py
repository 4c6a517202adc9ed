"""Each adapter on a small project, for tests of what all of them promise."""

import os
import shutil
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen
from msp_bridge.adapters.cargo_mutants import CargoMutants
from msp_bridge.adapters.cosmic_ray import CosmicRay
from msp_bridge.adapters.generic import Generic
from msp_bridge.adapters.gremlins import Gremlins
from msp_bridge.adapters.mutmut import Mutmut
from msp_bridge.adapters.pit import Pit
from msp_bridge.adapters.stryker_js import StrykerJs
from msp_bridge.adapters.stryker_net import StrykerNet

from msp_bridge.adapter import Adapter, Project
from support import generic_trees, go_trees, java_trees, net_projects, net_trees, rust_trees, stryker_js_trees
from support.adapters import project_at
from support.files import written
from support.projects import EXAMPLES, copied
from support.stryker_js_trees import CORE8, CORE9

Make = Callable[[Path, pytest.MonkeyPatch], Project]


@frozen
class Case:
    """An adapter, and what makes its project below a directory."""

    adapter: type[Adapter]
    made: Make
    sample: int = 1  # how many mutants the conformance suite tests in each check
    marks: pytest.MarkDecorator | tuple[()] = ()


def on(project: Callable[[Path], Path], variables: Mapping[str, str] | None = None, **about: Any) -> Make:
    """On that project, with these variables of the environment."""

    def made(to: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
        for name, value in (variables or {}).items():
            monkeypatch.setenv(name, value)
        return project_at(project(to), **{"jobs": 2, **about})

    return made


def generic(*chosen: str) -> Make:
    """With tools that edit the files that they mutate."""

    def made(to: Path, _: pytest.MonkeyPatch) -> Project:
        root = copied("generic_shop", to)
        tables = generic_trees.settings(root)
        return project_at(root, settings={name: tables[name] for name in chosen}, jobs=2)

    return made


def scripted_dotnet(project: str) -> Make:
    def made(to: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
        net_trees.scripted_dotnet(to, monkeypatch)
        if project == "net_repo":
            monkeypatch.setenv("PATH", str(net_trees.SDK / "tools"), prepend=os.pathsep)
        return project_at(copied(project, to), jobs=2)

    return made


def stand_in_for_cargo(to: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    rust_trees.stand_in(to, monkeypatch)
    return project_at(copied("rust_stand_in", to), jobs=2)


def shop_in_go(to: Path) -> Path:
    """Without the endless mutant, which would be tested again and again."""
    root = go_trees.shop(to)
    shutil.rmtree(root / "stock")
    return root


def two_classes(to: Path) -> Path:
    others = {path.replace("F", "G"): text.replace("F", "G") for path, text in java_trees.SMALLEST.items()}
    return java_trees.without_maven(written(to / "project", java_trees.SMALLEST | others))


PYTHON = Path(sys.executable)
JS8, JS9 = (partial(stryker_js_trees.copied, "js_mocha", modules=core) for core in (CORE8, CORE9))
CASES = {
    "mutmut": Case(Mutmut, on(partial(copied, EXAMPLES / "shop"), python=PYTHON), 12),
    "cosmic-ray": Case(CosmicRay, on(partial(copied, "cr_flat"), python=PYTHON), 4),
    "cosmic-ray by a command": Case(CosmicRay, on(partial(copied, "cr_src"), python=PYTHON), 2),
    "generic": Case(Generic, generic("prices", "texts"), 2),
    "StrykerJS, served": Case(StrykerJs, on(JS9), 3),
    "StrykerJS, command line": Case(StrykerJs, on(JS8, jobs=1), 3),
    **{name: Case(StrykerNet, scripted_dotnet(name), 6) for name in ("net_calc", "net_repo")},
    "the real Stryker.NET": Case(StrykerNet, on(partial(copied, net_projects.EXAMPLE)), 2, net_projects.REAL),
    "a stand-in for cargo": Case(CargoMutants, stand_in_for_cargo, 6),
    "the real cargo-mutants": Case(
        CargoMutants,
        on(partial(copied, EXAMPLES / "shop-rust"), {"PATH": rust_trees.PROGRAMS}),
        3,
        rust_trees.needs("cargo-mutants"),
    ),
    "gremlins": Case(Gremlins, on(shop_in_go, {"PATH": go_trees.PROGRAMS}), 4, go_trees.needs_gremlins),
    "PIT": Case(Pit, on(two_classes), 2, java_trees.needs_pit),
}


def cases(*names: str, of: Mapping[str, Case] = CASES) -> pytest.MarkDecorator:
    """A test with each of these, or with all."""
    return pytest.mark.parametrize("name", [pytest.param(name, marks=of[name].marks) for name in names or of])
