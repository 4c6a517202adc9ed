"""Adapters that ship with the bridge pass the conformance suite that any adapter can run."""

import os
from functools import partial
from pathlib import Path

import pytest
from msp_bridge.adapters.cargo_mutants import CargoMutants
from support import rust_trees
from support.every_adapter import CASES, cases
from support.java_trees import cache_with

from msp_bridge.testing import check_adapter


@cases()
async def test_the_adapter_keeps_its_promises(
    name: str, tmp_path: Path, pit_tools: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = CASES[name]
    cache_with(pit_tools, tmp_path)
    project = case.made(tmp_path, monkeypatch)
    counted = partial(rust_trees.listings, tmp_path) if "stand-in" in name else None
    await check_adapter(case.adapter, project, sample=case.sample, listings=counted)
    assert os.listdir(temporary) == [] or case.adapter is not CargoMutants
