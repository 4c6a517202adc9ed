"""Nobody is served who hasn't shown the token, and nobody learns it from the server."""

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from support.msp_client import Client, framed
from support.servers import ScriptedProject, launched, mutants_of, over_stdio, refused_by, until
from support.socket_servers import TOKEN, SocketServer, socket_server, the_token, token_file

from msp_bridge.access import credentials, gate
from msp_bridge.access.addresses import Addresses
from msp_bridge.access.credentials import Token
from msp_bridge.access.gate import AUTHENTICATION_LIMITS
from msp_bridge.errors import BridgeError, ConfigurationError

REJECTED = -32000
TOKEN_NEEDED = "this server needs a token: the first message must be the request `authenticate`"


@pytest.fixture
async def server(
    project: ScriptedProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[SocketServer]:
    """It listens on loopback, and has a token all the same."""
    monkeypatch.setattr(gate, "WRONG_TOKEN_DELAY_S", 0.01)
    project.write("a.py", "1")
    async with socket_server(project, token=the_token(tmp_path)) as server:
        yield server


async def rejection(client: Client) -> dict[str, Any]:
    """The one answer that a rejected client gets before the server closes its side."""
    answer = await client.receive()
    assert answer["error"]["code"] == REJECTED
    assert answer["error"]["message"].endswith("; closing the connection")
    assert await client.ended() == b""
    return answer


async def test_what_follows_the_token_in_the_same_chunk_is_served(server: SocketServer) -> None:
    client = await server.connect()
    await client.send(
        {"id": 1, "method": "authenticate", "params": {"token": TOKEN}},
        {"id": 2, "method": "configure", "params": {"fromALaterProtocol": "x" * 2 * AUTHENTICATION_LIMITS.body}},
    )
    assert (await client.answer(1))["result"] == {}
    assert (await client.answer(2))["result"] == {"version": "0.4.0"}


@pytest.mark.parametrize(
    ("message", "id"),
    [
        ({"id": 7, "method": "discover"}, 7),
        ({"id": 7, "method": "configure", "params": {"token": TOKEN}}, 7),
        ({"method": "authenticate", "params": {"token": TOKEN}}, None),
        ({"id": "a", "method": "authenticate"}, "a"),
        ({"id": "a", "method": "authenticate", "params": [TOKEN]}, "a"),
        ({"id": "a", "method": "authenticate", "params": {"token": None}}, "a"),
        ({"id": "a", "method": "authenticate", "params": {"TOKEN": TOKEN}}, "a"),
        (framed([{"jsonrpc": "2.0", "id": 1, "method": "authenticate", "params": {"token": TOKEN}}]), None),
        (framed({"id": 7, "method": "authenticate", "params": {"token": TOKEN}}), 7),
        (framed(b"{"), None),
        (framed(b"[" * 4000), None),
        (framed(b""), None),
        (b"GET / HTTP/1.1\r\n\r\n", None),
        (b"Content-Length: x\r\n\r\n", None),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\n\n", None),
        (b"Content-Length: %d\r\n\r\n" % (AUTHENTICATION_LIMITS.body + 1), None),
        (b"X: %b\r\nContent-Length: 2\r\n\r\n{}" % (b"x" * AUTHENTICATION_LIMITS.header), None),
        (b"x" * (AUTHENTICATION_LIMITS.header + 100), None),
    ],
)
async def test_anything_else_or_larger_comes_first_and_the_connection_is_closed(
    message: Any, id: Any, server: SocketServer, project: ScriptedProject
) -> None:
    client = await server.connect()
    await client.send(message, {"id": "next", "method": "discover"})
    answer = await rejection(client)
    assert answer["id"] == id
    assert answer["error"]["message"].startswith(TOKEN_NEEDED)
    assert "within" not in answer["error"]["message"], "it was rejected for what it sent, not for what it didn't"
    assert project.log == [], "no tool was called"


@pytest.mark.parametrize("wrong", ["", "x", TOKEN[:-1], TOKEN + " ", TOKEN.upper(), "\ud800", "é" * 32])
async def test_a_wrong_token_is_rejected(wrong: str, server: SocketServer, project: ScriptedProject) -> None:
    client = await server.connect()
    await client.send(
        {"id": 1, "method": "authenticate", "params": {"token": wrong}}, {"id": 2, "method": "mutationTest"}
    )
    answer = await rejection(client)
    assert answer["id"] == 1
    assert answer["error"]["message"].startswith("this is not the server's token; ")
    assert project.log == []


async def test_a_wrong_token_is_not_answered_at_once(server: SocketServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "WRONG_TOKEN_DELAY_S", 3600)
    client = await server.connect()
    await client.send({"id": 1, "method": "authenticate", "params": {"token": "wrong"}})
    answer = asyncio.create_task(client.receive())
    other = await server.authenticated()
    assert await other.request("configure") == {"version": "0.4.0"}
    assert not answer.done()
    answer.cancel()


def test_tokens_are_compared_in_constant_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []

    def compare_digest(one: bytes, other: bytes) -> bool:
        compared.append((len(one), len(other)))
        return one == other

    monkeypatch.setattr(credentials.hmac, "compare_digest", compare_digest)
    known = the_token(tmp_path)
    assert [known.matches(shown) for shown in (TOKEN, "", "x" * 5000)] == [True, False, False]
    assert compared == [(32, 32)] * 3, "digests: not even its length makes a difference"


@pytest.mark.parametrize("said", [b"", b"Content-Length: 80\r\n\r\n{", b"Content-"])
async def test_an_unauthenticated_connection_that_sends_too_little_is_closed(
    said: bytes, server: SocketServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "AUTHENTICATION_TIMEOUT_S", 0.05)
    client = await server.connect()
    if said:
        await client.send(said)
    answer = await rejection(client)
    assert answer["error"]["message"].startswith(TOKEN_NEEDED)
    assert ", within 0.05 s" in answer["error"]["message"]


async def test_sending_the_token_byte_by_byte_gains_no_time(
    server: SocketServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "AUTHENTICATION_TIMEOUT_S", 0.2)
    client = await server.connect()

    async def drip() -> None:
        while True:
            await client.send(b"X")
            await asyncio.sleep(0.02)

    dripping = asyncio.create_task(drip())
    await rejection(client)
    dripping.cancel()
    await asyncio.wait([dripping])


async def test_idle_unauthenticated_connections_keep_no_client_out(
    server: SocketServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "MAX_UNAUTHENTICATED", 3)
    idle = [await server.connect() for _ in range(3)]
    client = await server.authenticated()
    expected = "more than 3 connections have not authenticated, and this is the oldest; closing the connection"
    assert (await rejection(idle[0]))["error"]["message"] == expected
    more = [await server.connect() for _ in range(3)]
    for other in idle[1:]:
        await rejection(other)
    assert await client.request("configure") == {"version": "0.4.0"}
    assert await more[2].request("authenticate", {"token": TOKEN}) == {}


async def test_an_unauthenticated_connection_that_leaves_is_no_error(
    server: SocketServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    await (await server.connect()).wire.aclose()
    await until(lambda: ": it left without a message\n" in caplog.text)

    async def broken(*_: Any) -> None:
        raise ConnectionResetError

    monkeypatch.setattr("msp_bridge.access.gate.authenticate", broken)
    await (await server.connect()).ended()
    await until(lambda: ": it left before it was answered\n" in caplog.text)
    assert "Traceback" not in caplog.text


async def test_a_second_authenticate_is_no_method(server: SocketServer) -> None:
    client = await server.authenticated()
    assert (await client.refused("authenticate", {"token": "a guess"}))[0] == -32601


async def test_the_token_is_in_no_log(
    server: SocketServer, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG)
    await (await server.authenticated()).request("configure")
    for message in (
        {"id": TOKEN, "method": TOKEN, "params": {"token": TOKEN}},
        {"id": 1, "method": "authenticate", "params": TOKEN},
        {"id": 1, "method": "authenticate", "params": {"token": TOKEN + "x"}},
        f"Authorization: Bearer {TOKEN}\r\n\r\n".encode(),
        f"{TOKEN}\n\n".encode(),
    ):
        client = await server.connect()
        await client.send(message)
        await rejection(client)
    await until(lambda: caplog.text.count("rejected 127.0.0.1") == 5)
    assert TOKEN not in caplog.text


def test_the_token_is_in_no_repr(tmp_path: Path) -> None:
    assert TOKEN not in repr(the_token(tmp_path))
    assert TOKEN not in repr(vars(type("Frame", (), {"token": the_token(tmp_path)})))


async def test_tools_do_not_inherit_the_token(project: ScriptedProject, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MSP_BRIDGE_TOKEN", TOKEN)
    project.write("a.py", "1")
    project.script(tool="hang", lines=True)
    arguments = ("serve", "socket", "--port", "0", "--adapter", "scripted", "--log-level", "debug")
    async with launched(project.root, *arguments, forked=True) as server:
        client = await server.connect()
        assert await client.request("authenticate", {"token": TOKEN}) == {}
        await client.ask("mutationTest")
        tool = psutil.Process(await project.started("hang"))
        started = psutil.Process(server.process.pid).children(recursive=True)
        assert tool in started
        assert [process for process in started if TOKEN in process.environ().values()] == []
        await server.terminated()
        assert TOKEN not in "\n".join(server.said)


@pytest.mark.parametrize(
    ("text", "mode", "expected"),
    [
        ("", 0o600, "is empty, it needs 16 or more: make one with `openssl rand -hex 32`"),
        ("\n \n", 0o600, "is empty, it needs 16 or more"),
        ("0123456789abcde", 0o600, "is only 15 characters long, it needs 16 or more"),
        ("0123456789abcdef 0123456789abcdef", 0o600, "must be one word"),
        (TOKEN, 0o604, "every user of this machine may open "),
        (TOKEN, 0o602, "every user of this machine may open "),
    ],
)
def test_a_weak_or_open_token_file_is_an_error(text: str, mode: int, expected: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Token.given(token_file(tmp_path, text, mode), None)
    assert expected in str(caught.value)
    assert str(caught.value).startswith("--token-file: ")
    if mode != 0o600:
        assert str(caught.value).endswith(f": chmod 600 {tmp_path / 'token'}")


@pytest.mark.parametrize("name", ["gone", ".", "binary"])
def test_a_token_file_that_cannot_be_read_is_an_error(name: str, tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff" * 64)
    (tmp_path / "binary").chmod(0o600)
    with pytest.raises(ConfigurationError, match=r"--token-file: (can't read .*|.* is not a file)"):
        Token.given(tmp_path / name, None)


@pytest.mark.parametrize("value", ["", "short", "two words that are long"])
def test_a_weak_token_in_the_environment_is_an_error(value: str) -> None:
    with pytest.raises(ConfigurationError, match=r"MSP_BRIDGE_TOKEN: the token (is|must be) "):
        Token.given(None, value)


def test_a_token_file_goes_before_the_environment(tmp_path: Path) -> None:
    known = Token.given(token_file(tmp_path), "another token, in the environment")
    assert known is not None
    assert known.matches(TOKEN)
    assert Token.given(None, None) is None


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("--allow-remote", "--allow-remote needs a token: add --token-file FILE, or set MSP_BRIDGE_TOKEN"),
        ("--address 0.0.0.0 --allow-remote", "--allow-remote needs a token"),
        ("--address 0.0.0.0", "other machines can reach 0.0.0.0: leave --address out, and use ssh -L"),
        ("--address 0.0.0.0 --token-file {token}", "other machines can reach 0.0.0.0"),
        ("--address :: --token-file {token}", "other machines can reach ::"),
        ("--address 192.0.2.1 -- --token-file {token}", "or add --allow-remote, and a token by --token-file FILE"),
        ("--token {token}", "No such option '--token'"),
        ("-- --allow-remote", "--allow-remote needs a token"),
        ("-- --tls-cert x", "--tls-cert and --tls-key need each other"),
        ("--tls-key x", "--tls-cert and --tls-key need each other"),
    ],
)
def test_other_machines_are_let_in_only_by_both_an_option_and_a_token(
    arguments: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    line = arguments.format(token=token_file(tmp_path)).split()
    code, err = refused_by(monkeypatch, capsys, "socket", "--port", "0", "--root", str(tmp_path), *line)
    assert code == 2
    assert expected in " ".join(err.split())


@pytest.mark.parametrize(
    ("name", "remote"),
    [
        ("localhost", False),
        ("127.0.0.1", False),
        ("127.1.2.3", False),
        ("::1", False),
        ("0.0.0.0", True),
        ("::", True),
        ("192.0.2.1", True),
        ("10.0.0.1", True),
        ("169.254.0.1", True),
        ("2001:db8::1", True),
        ("::ffff:192.0.2.1", True),
    ],
)
def test_what_other_machines_can_reach_is_known_by_its_address(name: str, remote: bool) -> None:
    try:
        addresses = Addresses.resolve(name, 0)
    except BridgeError:
        pytest.skip("this machine has no IPv6")
    assert addresses.remote is remote


async def test_stdio_needs_no_token_even_where_one_is_set(
    project: ScriptedProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MSP_BRIDGE_TOKEN", "short")
    async with over_stdio(project) as client:
        assert await client.request("configure") == {"version": "0.4.0"}
    code, err = refused_by(monkeypatch, capsys, "stdio", "--", "--token-file", str(token_file(tmp_path)))
    assert code == 2
    said = "are for `serve socket`, `serve websocket` and `serve mcp`, and so are --allow-remote, --token-file"
    assert said in " ".join(err.split())


async def test_a_server_for_other_machines_listens_there_and_warns_without_tls(
    project: ScriptedProject, tmp_path: Path
) -> None:
    project.write("a.py", "1")
    file = token_file(tmp_path, f"{TOKEN}\n")
    options = ("--address", "0.0.0.0", "--", "--allow-remote", "--token-file", str(file), "--adapter", "scripted")
    async with launched(project.root, "serve", "socket", "--port", "0", *options, forked=True) as server:
        await until(lambda: any("serving MSP on 0.0.0.0:" in line for line in server.said))
        assert any("without --tls-cert and --tls-key, the token and your code cross" in line for line in server.said)
        client = await server.connect()
        await client.send({"id": 1, "method": "discover"})
        await rejection(client)
        await until(lambda: any("rejected 127.0.0.1" in line for line in server.said))
        client = await server.connect()
        assert await client.request("authenticate", {"token": TOKEN}) == {}
        assert len(mutants_of(await client.request("discover"))) == 1
        await server.terminated()


async def test_without_any_option_only_this_machine_is_listened_to(project: ScriptedProject) -> None:
    async with launched(project.root, "serve", "socket", "--port", "0", "--adapter", "scripted", forked=True) as server:
        await server.address()
        listening = [each for each in psutil.net_connections("tcp") if each.pid == server.process.pid]
        assert {connection.laddr.ip for connection in listening} <= {"127.0.0.1", "::1"}
        assert len(listening) >= 1
        await server.terminated()


async def test_a_server_without_a_token_has_no_such_method(
    project: ScriptedProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "MAX_UNAUTHENTICATED", 0)  # nor does anybody wait for one
    async with socket_server(project) as server:
        client = await server.connect()
        code, said = await client.refused("authenticate", {"token": TOKEN})
        assert code == -32601
        assert TOKEN not in said
