"""The documents of the protocols have each method that there is; `test_documents.py` has the tests that they name."""

import re
from pathlib import Path
from typing import Any, get_args

import mcp_types
from lsprotocol import types

from msp_bridge.dialects.dialect import DEFAULT, DIALECTS

PAGES = Path(__file__).parents[2] / "docs/reference"
TEXT = "".join((PAGES / f"{name}.md").read_text("utf-8") for name in ("dialects", "msp-alpha", "mtp", "test-runner"))
ELSEWHERE = {DEFAULT, "lsp"}  # documents of their own


def supported(document: str) -> str:
    """The tables of a document that has other sections, too."""
    text = (PAGES / document).read_text("utf-8").partition("## What is supported\n")[2]
    return text.partition("\n## ")[0]


def rows(text: str) -> list[str]:
    """Of all tables with a column for tests."""
    return [line for line in text.splitlines() if line[:2] == "| " and not line.endswith("| test |")]


def missing(methods: list[str], text: str) -> list[str]:
    """Methods that no row's first column has, `completion` where the row says that all begin with `textDocument/`."""
    words = {word for row in rows(text) for word in re.findall(r"`([^`]+)`", row[2:].partition(" | ")[0])}
    return [method for method in methods if method not in words and method.removeprefix("textDocument/") not in words]


def test_every_method_of_mcp_has_a_row() -> None:
    sdk = mcp_types
    unions: list[Any] = [sdk.ClientRequest, sdk.ClientNotification, sdk.ServerRequest, sdk.ServerNotification]
    methods = [message.model_fields["method"].default for union in unions for message in get_args(union)]
    assert len(methods) > 25
    assert missing(methods, supported("mcp.md")) == []


def test_every_method_of_lsp_has_a_row() -> None:
    assert missing(list(types.METHOD_TO_TYPES), supported("lsp.md")) == []


def test_every_dialect_is_described() -> None:
    assert [name for name in DIALECTS if name not in ELSEWHERE and f"--dialect {name}" not in TEXT] == []
