"""JsonRpcClient: requests to a tool's server, whatever else the tool prints, however it ends. A script is the tool."""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.cancelling import cancelled

from msp_bridge.errors import ToolError
from msp_bridge.jsonrpc.client import ErrorResponse, JsonRpcClient
from msp_bridge.processes import ProcessTree

TOOL = """
import json, os, sys

def read():
    length = int(sys.stdin.buffer.readline().partition(b":")[2])
    sys.stdin.buffer.readline()
    return json.loads(sys.stdin.buffer.read(length))

def write(data):
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()

def frame(message):
    body = json.dumps(message).encode()
    return b"Content-Length: %d\\r\\n\\r\\n" % len(body) + body

request = read()
ID = request["id"]
ANSWER = {"jsonrpc": "2.0", "id": ID, "result": {"of": request["method"]}}
"""


@contextlib.asynccontextmanager
async def tool(directory: Path, script: str) -> AsyncIterator[JsonRpcClient]:
    """A tool that has read one request, and does then what `script` says."""
    async with ProcessTree.running([sys.executable, "-c", TOOL + script], cwd=directory, stdin=True) as tree:
        yield JsonRpcClient(tree, "Mutest")


async def test_requests_have_numbers_of_their_own(tmp_path: Path) -> None:
    script = "write(frame({'id': ID, 'result': ID})); ID = read()['id']; write(frame({'id': ID, 'result': ID}))"
    async with tool(tmp_path, script) as client:
        assert [await client.request("configure", {}), await client.request("discover", {})] == [1, 2]
        assert not client.busy


async def test_everything_until_the_answer_is_received_in_its_order(tmp_path: Path) -> None:
    script = """
for number in range(3):
    write(frame({"method": "progress", "params": number}))
write(frame({"id": ID, "method": "a question of its own", "params": 3}))  # which is no answer
write(frame(ANSWER) + frame({"method": "progress", "params": "too late"}))
"""
    async with tool(tmp_path, script) as client:
        async with contextlib.aclosing(client.stream("mutationTest", {})) as messages:
            received = [message async for message in messages]
    assert [message.get("params") for message in received[:-1]] == [0, 1, 2, 3]
    assert received[-1]["result"] == {"of": "mutationTest"}


async def test_noise_around_messages_is_left_out_and_remembered(tmp_path: Path) -> None:
    script = "write(b'Version: 4.16.0' + frame({'method': 'progress'}) + b', ready' + frame(ANSWER))"
    async with tool(tmp_path, script) as client:
        async with contextlib.aclosing(client.stream("discover", {})) as messages:
            assert [message.get("method") async for message in messages] == ["progress", None]
        assert client.reader.noise == "Version: 4.16.0, ready"


async def test_long_messages_with_any_character_come_whole(tmp_path: Path) -> None:
    script = "write(frame({'id': ID, 'result': '\\N{GRINNING FACE}\\r\\n' * 100_000}))"
    async with tool(tmp_path, script) as client:
        assert await client.request("discover", {}) == "\N{GRINNING FACE}\r\n" * 100_000


async def test_a_message_that_is_too_long_is_an_error(tmp_path: Path) -> None:
    async with tool(tmp_path, r"write(b'Content-Length: 999999999\r\n\r\n{'); read()") as client:
        with pytest.raises(ToolError, match=r"Mutest sent what can't be read \(a message of 999999999 bytes"):
            await client.request("discover", {})


@pytest.mark.parametrize(
    ("error", "text"), [({"code": 1, "message": "no such file"}, "no such file"), ({}, "None"), ("odd", "odd")]
)
async def test_an_error_response_has_the_message_of_the_tool(tmp_path: Path, error: object, text: str) -> None:
    async with tool(tmp_path, f"write(frame({{'id': ID, 'error': {error!r}}}))") as client:
        with pytest.raises(ErrorResponse, match=text):
            await client.request("discover", {})
        assert not client.busy


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("sys.exit('no room left')", "Mutest ended unexpectedly .exit code 1: no room left"),
        ("sys.exit('Error: no map\\n' + '    at load (map.js:4284:24)\\n' * 40)", r"exit code 1: Error: no map\)"),
        ("sys.exit('lost ' * 200 + '\\nno room left')", r"exit code 1: no room left\)"),
        ("sys.exit('no room left ' * 200)", "exit code 1: no room left no room"),
        ("os._exit(3)", "exit code 3"),
        ("os.kill(os.getpid(), 9)", "Mutest ended unexpectedly .killed by SIGKILL"),
        ("write(frame(ANSWER)[:-5]); os._exit(4)", "exit code 4"),
        ("write(b'Content-Length: 7'); os._exit(5)", "exit code 5"),
    ],
)
async def test_an_end_without_an_answer_shows_the_output_of_the_tool(tmp_path: Path, script: str, words: str) -> None:
    async with tool(tmp_path, script) as client:
        with pytest.raises(ToolError, match=words):
            await client.request("discover", {})
        assert client.busy
        assert not await client.cancel(5)


async def test_the_reason_is_the_same_when_the_end_is_seen_first_on_writing(tmp_path: Path) -> None:
    script = "write(frame(ANSWER)); sys.stdin.close(); os.close(0); sys.exit('no room left')"
    async with tool(tmp_path, script) as client:
        assert await client.request("discover", {}) == {"of": "discover"}
        await client._tree.exited()
        with pytest.raises(ToolError, match=r"Mutest ended unexpectedly \(exit code 1: no room left\)"):
            await client.request("discover", {})


async def test_a_tool_that_closes_its_input_and_goes_on_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("msp_bridge.jsonrpc.client.EXIT_TIMEOUT_S", 0.5)
    script = "write(frame(ANSWER)); os.close(0); write(frame({'method': 'closed'})); time.sleep(600)"
    async with tool(tmp_path, f"import time\n{script}") as client:
        assert await client.request("discover", {}) == {"of": "discover"}
        assert await client.reader.receive() == {"method": "closed"}
        with pytest.raises(ToolError, match="Mutest has closed its input, and goes on"):
            await client.request("discover", {})


CANCELLABLE = """
write(frame({"method": "progress"}))
cancel = read()
write(frame({"method": "progress", "params": "too late"}))
write(frame({"id": cancel["params"]["id"], "error": {"code": -32800, "message": cancel["method"]}}))
write(frame({"id": read()["id"], "result": "the next one"}))
"""


@pytest.mark.parametrize("end", ["closed", "its task cancelled"])
async def test_a_conversation_that_was_broken_off_can_be_cancelled(end: str, tmp_path: Path) -> None:
    async with tool(tmp_path, CANCELLABLE) as client:
        if end == "closed":
            async with contextlib.aclosing(client.stream("mutationTest", {})) as messages:
                await anext(messages)
        else:
            asking = asyncio.create_task(client.request("mutationTest", {}))
            await asyncio.sleep(0.05)
            await cancelled(asking)
        assert client.busy
        assert await client.cancel(60)
        assert await client.request("discover", {}) == "the next one"


async def test_a_tool_that_does_not_answer_a_cancel_is_given_up(tmp_path: Path) -> None:
    script = "write(frame({'method': 'progress'})); read(); read()"
    async with tool(tmp_path, script) as client:
        async with contextlib.aclosing(client.stream("mutationTest", {})) as messages:
            await anext(messages)
        assert not await client.cancel(0.1)
        with pytest.raises(RuntimeError, match="discover was sent to Mutest while another request runs"):
            await client.request("discover", {})


async def test_there_is_nothing_to_cancel_after_an_answer(tmp_path: Path) -> None:
    script = "write(frame(ANSWER)); write(frame({'id': ID + 1, 'result': read()['method']}))"
    async with tool(tmp_path, script) as client:
        await client.request("configure", {})
        assert await client.cancel(60)
        assert await client.request("discover", {}) == "discover"  # no word of a cancel came before
