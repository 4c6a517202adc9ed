"""docs/security.md names a test for each claim: they are there, and the limits that it tells are those of the code."""

from __future__ import annotations

import re
from pathlib import Path

from msp_bridge.access import authentication, crowd, door
from msp_bridge.jsonrpc import connection, framing
from msp_bridge.workspace import configuration

HERE = Path(__file__).parent
TEXT = (HERE.parents[1] / "docs" / "security.md").read_text("utf-8")
TESTS = "".join(file.read_text("utf-8") for file in HERE.glob("test_*.py"))


def rows() -> list[list[str]]:
    """The cells of each row that claims something."""
    table = [[cell.strip() for cell in line.strip("|").split("|")] for line in TEXT.splitlines() if line[:2] == "| "]
    return [row for row in table if row[-1] != "test"]


def test_every_claim_names_a_test_that_is_there() -> None:
    assert len(rows()) > 30
    for row in rows():
        names = re.findall(r"`(test_\w+)`", row[-1])
        assert names, row
        assert [name for name in names if f"def {name}(" not in TESTS] == []


def test_the_limits_are_those_of_the_code() -> None:
    told = {row[0]: row[1] for row in rows() if len(row) == 3}
    assert told["clients at once"] == f"{crowd.MAX_CLIENTS}"
    assert told["connections that haven't shown their token, or finished their TLS handshake"].startswith(
        f"{crowd.MAX_STRANGERS};"
    )
    assert told["time for the TLS handshake, and for `authenticate`"] == f"{door.HANDSHAKE:g} s each"
    assert authentication.PATIENCE == door.HANDSHAKE
    small = authentication.LIMITS
    assert told["header and body of a message before that"] == f"{small.header // 1024} KiB, {small.body // 1024} KiB"
    big = framing.Limits()
    assert told["header and body of a message"] == f"{big.header // 1024} KiB, {big.body // 1024**2} MiB"
    assert told["silence in the middle of a message"] == f"{door.SILENCE:g} s, on a socket"
    assert told["requests of one client that run at once"] == f"{connection.MAX_IN_FLIGHT}"
    assert told["size of a configuration file that a client names"] == f"{configuration.MAX_SIZE // 1024**2} MiB"
    assert "after half a second" in TEXT
    assert authentication.DELAY == 0.5
