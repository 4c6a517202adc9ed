"""docs/dialects.md names a test for each rule of each protocol: they exist, and every dialect has its section."""

from __future__ import annotations

import re
from pathlib import Path

from msp_bridge.dialects.dialect import DEFAULT, DIALECTS

HERE = Path(__file__).parent
TEXT = (HERE.parents[1] / "docs" / "dialects.md").read_text("utf-8")
TESTS = "".join(file.read_text("utf-8") for file in HERE.glob("test_*.py"))
ELSEWHERE = {DEFAULT, "lsp"}  # documents of their own


def test_every_rule_names_a_test_that_is_there() -> None:
    rows = [line for line in TEXT.splitlines() if line[:2] == "| " and not line.endswith("| test |")]
    assert len(rows) > 20
    for row in rows:
        names = re.findall(r"`(test_\w+)`", row.rstrip("|").rpartition("|")[2])
        assert names, row
        assert [name for name in names if f"def {name}(" not in TESTS] == []


def test_every_dialect_is_described() -> None:
    assert [name for name in DIALECTS if name not in ELSEWHERE and f"--dialect {name}" not in TEXT] == []


def test_every_row_about_lsp_names_a_test_that_is_there() -> None:
    text = (HERE.parents[1] / "docs" / "lsp.md").read_text("utf-8").partition("## What is supported")[2]
    text = text.partition("## Clients that list all mutants")[0]
    tests = TESTS + (HERE.parent / "server" / "test_lsp.py").read_text("utf-8")
    rows = [line for line in text.splitlines() if line[:2] == "| " and not line.endswith("| test |")]
    assert len(rows) > 25
    for row in rows:
        names = re.findall(r"`([^`]+)`", row.rstrip("|").rpartition("|")[2])
        assert names, row
        for name in {name.removeprefix("test_") for name in names} - {"nvim"}:
            assert f"def test_{name}" in tests or (HERE / f"test_{name}").is_file(), name
