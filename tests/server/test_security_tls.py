"""TLS: nothing is sent unencrypted, and a client can recognize the server."""

import ssl
from collections.abc import Callable
from pathlib import Path

import pytest
import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)
from support.msp_client import Client
from support.servers import ScriptedProject, launched, mutants_of, until
from support.socket_servers import TOKEN, certificate_files, socket_server, the_token, token_file

from msp_bridge.access import gate
from msp_bridge.access.credentials import server_tls
from msp_bridge.errors import ConfigurationError


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def files(authority: trustme.CA, tmp_path: Path) -> tuple[Path, Path]:
    """A certificate for this machine, and its key."""
    return certificate_files(authority, tmp_path)


@pytest.fixture
def trusting(authority: trustme.CA) -> ssl.SSLContext:
    """What a client that trusts the authority uses."""
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


async def test_a_server_for_other_machines_speaks_tls(
    project: ScriptedProject, files: tuple[Path, Path], trusting: ssl.SSLContext, tmp_path: Path
) -> None:
    project.write("a.py", "1")
    tls = ("--tls-cert", str(files[0]), "--tls-key", str(files[1]))
    access = ("--allow-remote", "--token-file", str(token_file(tmp_path)), *tls, "--adapter", "scripted")
    async with launched(
        project.root, "serve", "socket", "--port", "0", "--address", "0.0.0.0", *access, forked=True
    ) as server:
        _, port = await server.address()
        wire = await server.connections.open("127.0.0.1", port, ssl=trusting)
        client = Client(wire)
        assert await client.request("authenticate", {"token": TOKEN}) == {}
        assert len(mutants_of(await client.request("discover"))) == 1
        assert await client.request("mutationTest") == {"files": {}}
        assert wire.tls.version() in ("TLSv1.2", "TLSv1.3")
        await server.terminated()
        assert not any("WARNING" in line for line in server.said)


async def test_the_certificate_is_the_one_that_was_given(
    project: ScriptedProject, files: tuple[Path, Path], trusting: ssl.SSLContext
) -> None:
    async with socket_server(project, tls=server_tls(*files)) as server:
        client = await server.connect(trusting)
        assert await client.request("configure") == {"version": "0.4.0"}
        await client.wire.aclose()
        with pytest.raises(ssl.SSLCertVerificationError):
            await server.connect(ssl.create_default_context())


async def test_a_client_without_tls_gets_no_message(
    project: ScriptedProject, files: tuple[Path, Path], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with socket_server(project, tls=server_tls(*files), token=the_token(tmp_path)) as server:
        client = await server.connect()
        await client.send({"id": 1, "method": "authenticate", "params": {"token": TOKEN}})
        said = await client.ended()
        assert b"{" not in said, "at most an alert of TLS"
        await until(lambda: "no TLS handshake" in caplog.text)
    assert project.log == []


async def test_a_handshake_that_does_not_end_is_ended(
    project: ScriptedProject, files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "HANDSHAKE_TIMEOUT_S", 0.1)
    async with socket_server(project, tls=server_tls(*files)) as server:
        client = await server.connect()
        assert await client.ended() == b""


async def test_unfinished_handshakes_keep_no_client_out(
    project: ScriptedProject, files: tuple[Path, Path], trusting: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("msp_bridge.access.gate.MAX_UNAUTHENTICATED", 3)
    async with socket_server(project, tls=server_tls(*files)) as server:
        unfinished = [await server.connect() for _ in range(3)]
        client = await server.connect(trusting)
        assert await client.request("configure") == {"version": "0.4.0"}
        assert await unfinished[0].ended() == b""


def test_old_versions_of_tls_are_not_spoken(files: tuple[Path, Path]) -> None:
    assert server_tls(*files).minimum_version >= ssl.TLSVersion.TLSv1_2


def swapped(chain: Path, key: Path) -> tuple[Path, Path]:
    chain.chmod(0o600)
    return key, chain


def missing(chain: Path, key: Path) -> tuple[Path, Path]:
    return chain.with_name("gone.pem"), key


def open_to_all(chain: Path, key: Path) -> tuple[Path, Path]:
    key.chmod(0o644)
    return chain, key


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        (swapped, "they must be a certificate in PEM and its key, without a passphrase"),
        (missing, "they must be a certificate in PEM and its key, without a passphrase"),
        (open_to_all, "every user of this machine may open .*: chmod 600 "),
    ],
)
def test_unusable_certificates_and_keys_are_errors(
    wrong: Callable[[Path, Path], tuple[Path, Path]], expected: str, files: tuple[Path, Path]
) -> None:
    with pytest.raises(ConfigurationError, match=expected):
        server_tls(*wrong(*files))


def test_a_key_with_a_passphrase_is_an_error_without_a_prompt(files: tuple[Path, Path], tmp_path: Path) -> None:
    locked = tmp_path / "locked.pem"
    plain = load_pem_private_key(files[1].read_bytes(), None)
    how = BestAvailableEncryption(b"secret")
    locked.write_bytes(plain.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, how))
    locked.chmod(0o600)
    with pytest.raises(ConfigurationError, match="without a passphrase"):
        server_tls(files[0], locked)
