"""docs/reference/tools/generic.md: its tables are valid, and its example is the project that the other tests run."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from msp_bridge.adapters.generic.settings import Tool
from support.generic_trees import SHOP

DOCUMENT = (Path(__file__).parents[2] / "docs/reference/tools/generic.md").read_text("utf-8")
BLOCKS = re.findall(r"^```toml\n(.*?)^```$", DOCUMENT, re.DOTALL | re.MULTILINE)
TABLES = [(name, table) for block in BLOCKS for name, table in tomllib.loads(block)["generic"].items()]


@pytest.mark.parametrize(("name", "table"), TABLES, ids=[name for name, _ in TABLES])
def test_a_table_is_valid(name: str, table: Any) -> None:
    assert Tool.of(name, table).files


def test_the_example_is_the_project_that_is_tested() -> None:
    assert (SHOP / "msp-bridge.toml").read_text("utf-8") in BLOCKS
