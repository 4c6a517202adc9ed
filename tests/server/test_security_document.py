"""The limits that docs/explanation/security.md names are those of the code."""

from pathlib import Path

from msp_bridge.access import gate
from msp_bridge.dialects import converter
from msp_bridge.dialects.lsp import dialect
from msp_bridge.jsonrpc import connection, framing, messages
from msp_bridge.mcp import http_server, running_calls, server
from msp_bridge.workspace import configuration

TEXT = (Path(__file__).parents[2] / "docs/explanation/security.md").read_text("utf-8")


def rows() -> list[list[str]]:
    """The cells of each row that claims something."""
    table = [[cell.strip() for cell in line.strip("|").split("|")] for line in TEXT.splitlines() if line[:2] == "| "]
    return [row for row in table if row[-1] != "test"]


def test_the_limits_are_those_of_the_code() -> None:
    limits = {row[0]: row[1] for row in rows() if len(row) == 3}
    assert limits["clients at once"] == f"{gate.MAX_CLIENTS}"
    assert limits["connections that have not sent the token, or not finished their TLS handshake"].startswith(
        f"{gate.MAX_UNAUTHENTICATED};"
    )
    assert limits["time for the TLS handshake, and for `authenticate`"] == f"{gate.HANDSHAKE_TIMEOUT_S:g} s each"
    assert gate.AUTHENTICATION_TIMEOUT_S == gate.HANDSHAKE_TIMEOUT_S
    small = gate.AUTHENTICATION_LIMITS
    assert limits["header and body of a message before that"] == f"{small.header // 1024} KiB, {small.body // 1024} KiB"
    big = framing.MessageLimits()
    assert limits["header and body of a message"] == f"{big.header // 1024} KiB, {big.body // 1024**2} MiB"
    parts = "strings, arrays, objects and commas of a message, which decide what it takes in memory"
    assert limits[parts] == f"{messages.MAX_PARTS:,}"
    assert limits["faults of a message that are looked for and answered"].startswith(f"{converter.MAX_FAULTS}, ")
    assert limits["a message of MCP"] == f"{server.MAX_MESSAGE // 1024} KiB"
    head = f"{http_server.MAX_HEAD // 1024} KiB; {gate.MESSAGE_TIMEOUT_S:g} s; {gate.AUTHENTICATION_TIMEOUT_S:g} s"
    assert limits["over HTTP: head of a request; time for its body; time for the token"] == head
    assert limits["over HTTP: connections with the token, sessions, calls at once"] == (
        f"{http_server.MAX_CONNECTIONS}, {http_server.MAX_SESSIONS}, {connection.MAX_OPEN}"
    )
    assert limits["over HTTP: calls of a client that is gone"] == f"cancelled after {running_calls.GONE_S:g} s"
    assert limits["folders that a client of LSP opens"] == f"{dialect.MAX_FOLDERS}"
    assert limits["silence in the middle of a message"] == f"{gate.MESSAGE_TIMEOUT_S:g} s, on a socket"
    assert limits["requests of one client that run, or have an answer that the client has not read"] == (
        f"{connection.MAX_OPEN}; one more is answered by an error, and a client that does not read that within "
        f"{connection.REJECTION_TIMEOUT_S:g} s is disconnected"
    )
    unread = limits["bytes of answers that a client has not read"]
    assert unread.startswith(f"{connection.MAX_UNREAD // 1024**2} MiB; ")
    assert limits["size of a configuration file that a client names"] == f"{configuration.MAX_SIZE // 1024**2} MiB"
    assert "after half a second" in TEXT
    assert gate.WRONG_TOKEN_DELAY_S == 0.5
