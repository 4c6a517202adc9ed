"""The documents of the protocols name a test for each rule, which exists, and have each method that there is."""

import re
from pathlib import Path
from typing import Any, get_args

import mcp_types
from lsprotocol import types

from msp_bridge.dialects.dialect import DEFAULT, DIALECTS

HERE = Path(__file__).parent
PAGES = HERE.parents[1] / "docs/reference"
TEXT = "".join((PAGES / f"{name}.md").read_text("utf-8") for name in ("dialects", "msp-alpha", "mtp", "test-runner"))
OF_WEBSOCKET = HERE.parent / "server" / "test_security_websocket.py"
TESTS = "".join(file.read_text("utf-8") for file in (*HERE.glob("test_*.py"), OF_WEBSOCKET))
MCP_TESTS = [*HERE.parent.glob("server/test_*mcp*.py"), HERE.parent / "test_mcp_known_mutants.py"]
ELSEWHERE = {DEFAULT, "lsp"}  # documents of their own


def supported(document: str) -> str:
    """The tables of a document that has other sections, too."""
    text = (PAGES / document).read_text("utf-8").partition("## What is supported\n")[2]
    return text.partition("\n## ")[0]


def rows(text: str) -> list[str]:
    """Of all tables with a column for tests."""
    return [line for line in text.splitlines() if line[:2] == "| " and not line.endswith("| test |")]


def check_tests(text: str, tests: str) -> None:
    """Each row names tests, all of which exist."""
    assert len(rows(text)) > 20
    for row in rows(text):
        names = re.findall(r"`(test_\w+)`", row.rstrip("|").rpartition("|")[2])
        assert names, row
        assert [name for name in names if f"def {name}(" not in tests] == []


def missing(methods: list[str], text: str) -> list[str]:
    """Methods that no row's first column has, `completion` where the row says that all begin with `textDocument/`."""
    words = {word for row in rows(text) for word in re.findall(r"`([^`]+)`", row[2:].partition(" | ")[0])}
    return [method for method in methods if method not in words and method.removeprefix("textDocument/") not in words]


def test_every_rule_names_a_test_that_is_there() -> None:
    check_tests(TEXT, TESTS)


def test_every_rule_of_mcp_names_a_test_that_is_there() -> None:
    check_tests(supported("mcp.md"), TESTS + "".join(file.read_text("utf-8") for file in MCP_TESTS))


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


def test_every_row_about_lsp_names_a_test_that_is_there() -> None:
    tests = TESTS + (HERE.parent / "server" / "test_lsp.py").read_text("utf-8")
    assert len(rows(supported("lsp.md"))) > 25
    for row in rows(supported("lsp.md")):
        names = re.findall(r"`([^`]+)`", row.rstrip("|").rpartition("|")[2])
        assert names, row
        for name in {name.removeprefix("test_") for name in names} - {"nvim"}:
            assert f"def test_{name}" in tests or (HERE / f"test_{name}").is_file(), name
