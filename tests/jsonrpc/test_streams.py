"""Streams: bytes arrive whole and in order, a clogged peer stops the writer and nobody else, and stdout is ours alone."""

import asyncio
import contextlib
import errno
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from support.msp_client import LONG

from msp_bridge.jsonrpc.streams import ByteStream, SocketStream, StdioStream

MEGABYTE = b"0123456789abcdef" * 65536


async def forever(stream: ByteStream) -> None:
    while True:
        await stream.write(b"x")


@pytest.fixture
def pipes() -> Iterator[tuple[int, int, int, int]]:
    """Our stdin, its other end, our stdout, its other end."""
    stdin, to_stdin = os.pipe()
    from_stdout, stdout = os.pipe()
    fds = [stdin, to_stdin, stdout, from_stdout]
    yield stdin, to_stdin, stdout, from_stdout
    for fd in fds:
        with contextlib.suppress(OSError):  # closed by the test
            os.close(fd)


async def read_all(stream: ByteStream, wanted: int) -> bytes:
    data = b""
    async with asyncio.timeout(LONG):
        while len(data) < wanted and (more := await stream.read()):
            data += more
    return data


@contextlib.asynccontextmanager
async def sockets(
    family: socket.AddressFamily = socket.AF_INET,
) -> AsyncIterator[tuple[SocketStream, socket.socket, asyncio.StreamWriter]]:
    """Our end as a stream, the peer's as a bare socket, and the writer below our end."""
    accepted: asyncio.Queue[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = asyncio.Queue()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await accepted.put((reader, writer))

    host = "127.0.0.1" if family == socket.AF_INET else "::1"
    server = await asyncio.start_server(accept, host, 0, family=family)
    peer = socket.socket(family)
    peer.setblocking(False)
    await asyncio.get_running_loop().sock_connect(peer, server.sockets[0].getsockname()[:2])
    reader, writer = await accepted.get()
    stream = SocketStream(reader, writer)
    try:
        yield stream, peer, writer
    finally:
        peer.close()
        writer.transport.abort()
        server.close()


async def test_stdio_reads_what_comes_and_then_the_end(pipes: tuple[int, int, int, int]) -> None:
    stdin, to_stdin, stdout, _ = pipes
    stream = StdioStream(stdin, stdout)
    reading = asyncio.create_task(read_all(stream, len(MEGABYTE)))
    await asyncio.to_thread(write_all, to_stdin, MEGABYTE)
    assert await reading == MEGABYTE
    os.close(to_stdin)
    assert await stream.read() == b""
    assert await stream.read() == b""


def write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


async def test_stdio_writes_everything_in_order(pipes: tuple[int, int, int, int]) -> None:
    stdin, _, stdout, from_stdout = pipes
    stream, peer = StdioStream(stdin, stdout), StdioStream(from_stdout, stdout)
    writing = asyncio.gather(*(stream.write(b"%d" % number + MEGABYTE) for number in range(4)))
    data = await read_all(peer, 4 * (len(MEGABYTE) + 1))
    await writing
    assert data == b"".join(b"%d" % number + MEGABYTE for number in range(4))


async def test_stdio_with_a_clogged_peer_waits_and_reads_on(pipes: tuple[int, int, int, int]) -> None:
    stdin, to_stdin, stdout, from_stdout = pipes
    stream = StdioStream(stdin, stdout)
    writing = asyncio.create_task(stream.write(MEGABYTE))
    os.write(to_stdin, b"hello")
    assert await stream.read() == b"hello"
    done, _ = await asyncio.wait([writing], timeout=0.1)
    assert not done
    assert await read_all(StdioStream(from_stdout, stdout), len(MEGABYTE)) == MEGABYTE
    await writing


async def test_a_cancelled_write_to_stdio_leaves_no_half_message(pipes: tuple[int, int, int, int]) -> None:
    stdin, _, stdout, from_stdout = pipes
    stream = StdioStream(stdin, stdout)
    first = asyncio.create_task(stream.write(MEGABYTE))
    await asyncio.wait([first], timeout=0.05)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    second = asyncio.create_task(stream.write(b"second"))
    assert await read_all(StdioStream(from_stdout, stdout), len(MEGABYTE) + 6) == MEGABYTE + b"second"
    await second


async def test_a_peer_that_closed_our_stdout_is_a_connection_error(pipes: tuple[int, int, int, int]) -> None:
    stdin, _, stdout, from_stdout = pipes
    os.close(from_stdout)
    with pytest.raises(ConnectionError):
        await StdioStream(stdin, stdout).write(b"x")


async def test_descriptors_that_do_not_block_are_waited_for(pipes: tuple[int, int, int, int]) -> None:
    stdin, to_stdin, stdout, from_stdout = pipes
    os.set_blocking(stdin, False)
    os.set_blocking(stdout, False)
    stream = StdioStream(stdin, stdout)
    reading = asyncio.create_task(stream.read())
    writing = asyncio.create_task(stream.write(MEGABYTE))
    await asyncio.wait([reading, writing], timeout=0.05)
    os.write(to_stdin, b"hello")
    assert await reading == b"hello"
    assert await read_all(StdioStream(from_stdout, stdout), len(MEGABYTE)) == MEGABYTE
    await writing


ECHO = """
import asyncio, os, subprocess, sys
from msp_bridge.jsonrpc.streams import StdioStream

async def main():
    stream = StdioStream.claim()
    print("a stray print")
    sys.stdout.flush()
    os.write(1, b"a stray write\\n")
    subprocess.run([sys.executable, "-c", "print('a stray child'); print('it read', repr(input() if 0 else open(0).read()))"])
    while data := await stream.read():
        await stream.write(data)

asyncio.run(main())
"""


def run_echo(**stdin: Any) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([sys.executable, "-c", ECHO], capture_output=True, timeout=LONG, check=False, **stdin)


@pytest.mark.parametrize("kind", ["file", "null", "pipe"])
def test_claimed_stdio_works_with_any_stdin_and_keeps_prints_off_stdout(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "input"
    file.write_bytes(MEGABYTE)
    if kind == "pipe":
        run = run_echo(input=MEGABYTE)
    else:
        with (file if kind == "file" else Path(os.devnull)).open("rb") as stdin:
            run = run_echo(stdin=stdin)
    assert run.returncode == 0, run.stderr
    assert run.stdout == (b"" if kind == "null" else MEGABYTE)
    for stray in (b"a stray print", b"a stray write", b"a stray child", b"it read ''"):
        assert stray in run.stderr


def test_the_interpreter_exits_while_stdin_is_open_and_stdout_full() -> None:
    script = """
import asyncio
from msp_bridge.jsonrpc.streams import StdioStream

async def main():
    stream = StdioStream.claim()
    tasks = [asyncio.create_task(stream.read()), asyncio.create_task(stream.write(b"x" * 1_000_000))]
    await asyncio.wait(tasks, timeout=0.2)

asyncio.run(main())
"""
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.wait(LONG) == 0
    assert process.communicate()[1] == b""


@pytest.mark.parametrize("closed", ["<&-", ">&-"])
def test_closed_stdio_is_an_error(closed: str) -> None:
    script = """
import asyncio
from msp_bridge.jsonrpc.streams import StdioStream

async def main():
    try:
        StdioStream.claim()
    except OSError:
        raise SystemExit(42)

asyncio.run(main())
"""
    run = subprocess.run(f"exec {sys.executable} -c '{script}' {closed}", shell=True, timeout=LONG, check=False)
    assert run.returncode == 42


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
async def test_a_socket_has_no_delay(family: socket.AddressFamily) -> None:
    try:
        async with sockets(family) as (_, _, writer):
            assert writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    except OSError:
        pytest.skip("this machine has no IPv6")


async def test_a_message_is_given_to_the_socket_in_one_piece() -> None:
    async with sockets() as (stream, _, writer):
        with mock.patch.object(writer, "write", wraps=writer.write) as write:
            await stream.write(b"Content-Length: 2\r\n\r\n{}")
        assert [call.args for call in write.call_args_list] == [(b"Content-Length: 2\r\n\r\n{}",)]


async def test_a_socket_gives_and_takes_everything_in_order() -> None:
    async with sockets() as (stream, peer, _):
        loop = asyncio.get_running_loop()
        sending = asyncio.create_task(loop.sock_sendall(peer, MEGABYTE))
        assert await read_all(stream, len(MEGABYTE)) == MEGABYTE
        await sending
        writing = asyncio.create_task(stream.write(MEGABYTE))
        data = b""
        while len(data) < len(MEGABYTE):
            data += await loop.sock_recv(peer, 65536)
        await writing
        assert data == MEGABYTE


async def test_a_clogged_socket_stops_the_writer() -> None:
    async with sockets() as (stream, peer, _):
        written = 0

        async def write() -> None:
            nonlocal written
            while True:
                await stream.write(MEGABYTE)
                written += 1

        writing = asyncio.create_task(write())
        before = -1
        while written > before:
            before = written
            await asyncio.wait([writing], timeout=0.2)
        assert written < 64, "no more than the kernel's buffers can take"
        await asyncio.get_running_loop().sock_sendall(peer, b"still heard")
        assert await stream.read() == b"still heard"
        writing.cancel()
        await asyncio.wait([writing])


async def test_a_clogged_socket_is_closed_without_waiting_for_its_peer() -> None:
    async with sockets() as (stream, _, writer):
        writing = asyncio.create_task(stream.write(MEGABYTE * 64))
        await asyncio.wait([writing], timeout=0.1)
        assert not writing.done()
        async with asyncio.timeout(LONG):
            await stream.aclose()
            await asyncio.wait([writing])
        assert writer.transport.get_write_buffer_size() == 0


async def test_a_reset_socket_ends_reads_and_fails_writes() -> None:
    async with sockets() as (stream, peer, _):
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # close() sends a reset
        peer.close()
        async with asyncio.timeout(LONG):
            assert await stream.read() == b""
            with pytest.raises(ConnectionError):
                await forever(stream)


@pytest.mark.parametrize("reason", [errno.ETIMEDOUT, errno.EHOSTUNREACH])
async def test_a_peer_whose_machine_has_gone_is_a_peer_that_has_left(reason: int) -> None:
    async with sockets() as (stream, _, writer):
        protocol = writer.transport.get_protocol()
        assert protocol is not None
        protocol.connection_lost(OSError(reason, os.strerror(reason)))  # as when nobody answers the keep-alive probes
        assert await stream.read() == b""
        with pytest.raises(ConnectionError):
            await stream.write(b"x")
