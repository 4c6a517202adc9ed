"""A setting that an adapter doesn't have is an error, of every adapter, and a typing error gets a suggestion."""

import contextlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from support.files import written
from support.stryker_js_trees import scripted_core

from msp_bridge.adapter import ConfigurationError, Project, Scope
from msp_bridge.environment.distributions import installed, load

SETUPS = {  # by adapter: what sets it up, a table with a typing error, and the end of the message
    "cargo-mutants": (
        {"Cargo.toml": "[package]", ".cargo/mutants.toml": "", "a.rs": ""},
        {"jobs": 2},
        "the table 'cargo-mutants' has no setting 'jobs': write it in .cargo/mutants.toml, or remove it",
    ),
    "cosmic-ray": (
        {"cosmic-ray.toml": "[cosmic-ray]"},
        {"timeout": 2},
        "the table 'cosmic-ray' has no setting 'timeout': write it in [cosmic-ray] of cosmic-ray.toml, or remove it",
    ),
    "gremlins": (
        {"go.mod": "module a", ".gremlins.yaml": ""},
        {"workers": 2},
        "the table 'gremlins' has no setting 'workers': write it in .gremlins.yaml, or remove it",
    ),
    "generic": ({}, {"tool": {"fils": ["*.php"]}}, "generic.tool: unknown key 'fils': did you mean 'files'?"),
    "mutmut": (
        {"setup.cfg": "[mutmut]"},
        {"workers": 3},
        "the table 'mutmut' has no setting 'workers': write it in [mutmut] of setup.cfg, or remove it",
    ),
    "pit": (
        {"pom.xml": "<artifactId>pitest-maven</artifactId>"},
        {"verson": "1"},
        "the table 'pit' has no setting 'verson': did you mean 'version'?",
    ),
    "stryker-js": (
        {"stryker.config.json": "{}"},
        {"nodes": "x"},
        "the table 'stryker-js' has no setting 'nodes': did you mean 'node'?",
    ),
    "stryker-net": (
        {"stryker-config.json": json.dumps({"stryker-config": {}}), "a.cs": ""},
        {"comand": "x"},
        "the table 'stryker-net' has no setting 'comand': did you mean 'command'?",
    ),
}


def test_every_adapter_that_ships_is_looked_at() -> None:
    ours = {name for name, entry in installed().items() if entry.value.startswith("msp_bridge.adapters.")}
    assert ours == SETUPS.keys()


@pytest.mark.parametrize("name", SETUPS)
async def test_a_setting_that_there_is_not_is_an_error(name: str, tmp_path: Path) -> None:
    files, settings, message = SETUPS[name]
    written(tmp_path, files)
    if name == "stryker-js":
        scripted_core(tmp_path / "node_modules", "")
    with pytest.raises(ConfigurationError) as caught:
        await discovery(name, tmp_path, settings)
    assert str(caught.value) == message


async def discovery(name: str, root: Path, settings: dict[str, Any]) -> None:
    project = Project(root=root, cache=root.parent / "cache", settings=settings, python=Path(sys.executable))
    adapter = load(installed()[name]).detect(project)
    assert adapter is not None
    async with contextlib.aclosing(adapter), contextlib.aclosing(adapter.discover(Scope())) as mutants:
        async for _ in mutants:
            pass
