"""Connection: every message gets the answer that JSON-RPC 2.0 has for it, and none silences or ends the connection."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from support.connected import connected
from support.msp_client import Client, Refused, framed

from msp_bridge.jsonrpc.connection import MAX_IN_FLIGHT
from msp_bridge.jsonrpc.framing import MAX_BODY, MAX_HEADER
from msp_bridge.jsonrpc.messages import ErrorCode, RpcError


async def echo(params: Any) -> Any:
    return params


async def answer_to(client: Client, body: bytes) -> dict[str, Any]:
    """The next message after `body`; and the connection must still work."""
    await client.send(framed(body))
    answer = await client.receive()
    assert await client.request("echo", ["still there"]) == ["still there"]
    return answer


def refusal(answer: dict[str, Any], id: Any, code: int) -> str:
    """The message of an error answer, after a look at its shape."""
    assert answer.keys() == {"jsonrpc", "id", "error"}
    assert answer["id"] == id
    assert type(answer["id"]) is type(id)
    assert answer["error"]["code"] == code
    message = answer["error"]["message"]
    assert isinstance(message, str)
    assert message
    assert len(message) < 1000
    assert "Traceback" not in message
    return message


@pytest.mark.parametrize("params", [{"a": [1, 2.5, None, True, "ü😀"]}, [], {}, [None]])
async def test_a_request_is_answered_with_its_result(params: Any) -> None:
    async with connected({"echo": echo}) as both:
        assert await both.client.request("echo", params) == params


async def test_an_answer_without_a_result_says_null() -> None:
    async with connected({"echo": echo}) as both:
        await both.client.send({"id": 1, "method": "echo"})
        assert await both.client.receive() == {"jsonrpc": "2.0", "id": 1, "result": None}


@pytest.mark.parametrize(
    "id",
    [
        0,
        1,
        -1,
        2**31,
        2**53 + 1,
        2**63 - 1,
        2**64 - 1,
        2**64 + 1,
        10**30 + 1,
        1.5,
        "",
        "1",
        "a b",
        "ü😀",
        "x" * 10_000,
        "\ud800",
    ],
)
async def test_an_id_comes_back_as_it_was_sent(id: Any) -> None:
    async with connected({"echo": echo}) as both:
        await both.client.send({"id": id, "method": "echo"})
        answer = await both.client.receive()
        assert answer == {"jsonrpc": "2.0", "id": id, "result": None}
        assert type(answer["id"]) is type(id)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b'{"jsonrpc": "2.0", "id": 1, "method": "echo"',
        b"nonsense",
        b'{"jsonrpc": "2.0", "id": 1, "method": "echo", "params": [NaN]}',
        b'{"jsonrpc": "2.0", "id": 1, "method": "echo", "params": [NaN, "\\u0041"]}',
        b'{"jsonrpc": "2.0", "id": 1, "method": "echo", "params": ["\\ud800", -Infinity]}',
        b'{"jsonrpc": "2.0", "id": 1, "method": "\xff\xfe"}',
        b'{"jsonrpc": "2.0", "id": 1, "method": "\xff\\u0041"}',
        b'\xef\xbb\xbf{"jsonrpc": "2.0", "id": 1, "method": "echo"}',
        '{"jsonrpc": "2.0", "id": 1, "method": "echo"}'.encode("utf-16"),
        b"[" * 100_000,
        b"[" * 100_000 + b"]" * 100_000,
        b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
        b"[" * 100_000 + b'"\\u0041"' + b"]" * 100_000,
        b"[1" + b"0" * 100_000 + b'"\\u0041"',
    ],
    ids=lambda body: repr(body[:40]),
)
async def test_what_is_not_json_in_utf_8_is_a_parse_error(body: bytes) -> None:
    async with connected({"echo": echo}) as both:
        refusal(await answer_to(both.client, body), None, ErrorCode.PARSE_ERROR)


@pytest.mark.parametrize(
    ("message", "id"),
    [
        (1, None),
        (None, None),
        ("configure", None),
        ([], None),
        ([{"jsonrpc": "2.0", "id": 1, "method": "echo"}], None),
        ({}, None),
        ({"jsonrpc": "2.0"}, None),
        ({"jsonrpc": "2.0", "id": 7}, 7),
        ({"id": 7, "method": "echo"}, 7),
        ({"jsonrpc": "1.0", "id": "a", "method": "echo"}, "a"),
        ({"jsonrpc": 2.0, "id": 7, "method": "echo"}, 7),
        ({"jsonrpc": "2.0", "id": None, "method": "echo"}, None),
        ({"jsonrpc": "2.0", "id": True, "method": "echo"}, None),
        ({"jsonrpc": "2.0", "id": [1], "method": "echo"}, None),
        ({"jsonrpc": "2.0", "id": {}, "method": "echo"}, None),
        ({"jsonrpc": "2.0", "id": 7, "method": 1}, 7),
        ({"jsonrpc": "2.0", "id": 7, "method": None}, 7),
        ({"jsonrpc": "2.0", "method": ["echo"]}, None),
    ],
)
async def test_json_that_is_no_request_is_an_invalid_request(message: Any, id: Any) -> None:
    async with connected({"echo": echo}) as both:
        refusal(await answer_to(both.client, json.dumps(message).encode()), id, ErrorCode.INVALID_REQUEST)


async def test_a_batch_is_told_what_to_do_instead() -> None:
    async with connected({"echo": echo}) as both:
        answer = await answer_to(both.client, b'[{"jsonrpc": "2.0", "id": 1, "method": "echo"}]')
        assert "batches are not supported; send each request" in refusal(answer, None, ErrorCode.INVALID_REQUEST)


@pytest.mark.parametrize("method", ["", "discoverr", "$/unknown", "x" * 100, "\ud800"])
async def test_an_unknown_method_is_told_the_known_ones(method: str) -> None:
    async with connected({"echo": echo, "other": echo}) as both:
        answer = await answer_to(both.client, json.dumps({"jsonrpc": "2.0", "id": 1, "method": method}).encode())
        assert "echo, other" in refusal(answer, 1, ErrorCode.METHOD_NOT_FOUND)


async def test_a_huge_method_name_does_not_come_back_whole() -> None:
    async with connected({"echo": echo}) as both:
        answer = await answer_to(
            both.client, framed({"jsonrpc": "2.0", "id": 1, "method": "x" * 1_000_000}).partition(b"\r\n\r\n")[2]
        )
        refusal(answer, 1, ErrorCode.METHOD_NOT_FOUND)


async def test_an_error_of_a_method_is_told_with_its_code_message_and_data() -> None:
    async def fail(params: Any) -> Any:
        raise RpcError(ErrorCode.REQUEST_FAILED, "do this instead", {"why": [1]})

    async with connected({"fail": fail}) as both:
        with pytest.raises(Refused) as caught:
            await both.client.request("fail")
        assert (caught.value.code, caught.value.message, caught.value.data) == (-32803, "do this instead", {"why": [1]})


async def test_an_error_without_data_has_no_such_key() -> None:
    async def fail(params: Any) -> Any:
        raise RpcError(ErrorCode.REQUEST_FAILED, "do this instead")

    async with connected({"fail": fail}) as both:
        await both.client.send({"id": 1, "method": "fail"})
        error = (await both.client.receive())["error"]
        assert error == {"code": -32803, "message": "do this instead"}


async def test_a_fault_of_our_own_is_told_without_a_traceback_and_logged_with_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def fail(params: Any) -> Any:
        raise LookupError("secret detail")

    async with connected({"fail": fail, "echo": echo}) as both:
        answer = await answer_to(both.client, b'{"jsonrpc": "2.0", "id": 1, "method": "fail"}')
        message = refusal(answer, 1, ErrorCode.INTERNAL_ERROR)
    assert "secret detail" not in message
    assert "log" in message
    assert "secret detail" in caplog.text
    assert "Traceback" in caplog.text


async def test_a_broken_connection_of_a_tool_is_not_taken_for_the_clients(caplog: pytest.LogCaptureFixture) -> None:
    async def fail(params: Any) -> Any:
        raise ConnectionResetError("the tool's worker is gone")

    async with connected({"fail": fail, "echo": echo}) as both:
        answer = await answer_to(both.client, b'{"jsonrpc": "2.0", "id": 1, "method": "fail"}')
        refusal(answer, 1, ErrorCode.INTERNAL_ERROR)
    assert "the tool's worker is gone" in caplog.text


async def test_a_result_that_is_no_json_value_is_a_fault_of_our_own() -> None:
    async def broken(params: Any) -> Any:
        return object()

    async with connected({"broken": broken, "echo": echo}) as both:
        answer = await answer_to(both.client, b'{"jsonrpc": "2.0", "id": 1, "method": "broken"}')
        refusal(answer, 1, ErrorCode.INTERNAL_ERROR)


async def test_lone_surrogates_arrive_and_come_back() -> None:
    async with connected({"echo": echo}) as both:
        assert await both.client.request("echo", ["a\ud800b"]) == ["a\ud800b"]


@pytest.mark.parametrize("method", ["initialized", "$/setTrace", "echo", "", "$/cancelRequest"])
async def test_an_unknown_notification_is_ignored(method: str) -> None:
    async with connected({"echo": echo}) as both:
        await both.client.send({"method": method, "params": 5})
        assert await both.client.request("echo", [1]) == [1]


@pytest.mark.parametrize(
    "message",
    [
        {"id": 99, "result": 1},
        {"id": None, "result": 1},
        {"id": None, "error": {"code": 1, "message": "x"}},
        {"id": [1], "result": {}},
        {"id": "1", "error": "text"},
        {"result": 1},
    ],
)
async def test_a_response_is_ignored_and_logged(message: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    async with connected({"echo": echo}) as both:
        await both.client.send(message)
        assert await both.client.request("echo", [1]) == [1]
    assert "ignoring a response" in caplog.text


async def test_requests_run_side_by_side() -> None:
    go = asyncio.Event()

    async def wait(params: Any) -> Any:
        await go.wait()
        return "waited"

    async with connected({"wait": wait, "echo": echo}) as both:
        first = await both.client.ask("wait")
        assert await both.client.request("echo", [1]) == [1]
        go.set()
        assert await both.client.result(first) == "waited"


async def test_an_id_that_is_running_already_is_refused_and_the_first_goes_on() -> None:
    go = asyncio.Event()

    async def wait(params: Any) -> Any:
        await go.wait()
        return "waited"

    async with connected({"wait": wait}) as both:
        await both.client.send({"id": 5, "method": "wait"}, {"id": 5, "method": "wait"})
        assert "already running" in refusal(await both.client.receive(), 5, ErrorCode.INVALID_REQUEST)
        go.set()
        assert await both.client.receive() == {"jsonrpc": "2.0", "id": 5, "result": "waited"}


async def test_an_id_may_be_used_again_when_its_request_is_answered() -> None:
    async with connected({"echo": echo}) as both:
        for number in range(3):
            await both.client.send({"id": 5, "method": "echo", "params": [number]})
            assert (await both.client.receive())["result"] == [number]


async def test_too_many_requests_at_once_are_refused_and_the_others_served() -> None:
    go = asyncio.Event()

    async def wait(params: Any) -> Any:
        await go.wait()
        return "waited"

    async with connected({"wait": wait}) as both:
        await both.client.send(*({"id": number, "method": "wait"} for number in range(MAX_IN_FLIGHT + 2)))
        for number in (MAX_IN_FLIGHT, MAX_IN_FLIGHT + 1):
            refusal(await both.client.receive(), number, ErrorCode.REQUEST_FAILED)
        go.set()
        answers = [await both.client.receive() for _ in range(MAX_IN_FLIGHT)]
        assert {answer["id"] for answer in answers} == set(range(MAX_IN_FLIGHT))
        assert all(answer["result"] == "waited" for answer in answers)
        await both.client.send({"id": "again", "method": "wait"})
        assert (await both.client.receive())["result"] == "waited"


@pytest.mark.parametrize(
    "data",
    [
        b"hello\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"Content-Length: -1\r\n\r\n",
        b"Content-Length: %d\r\n\r\n" % (MAX_BODY + 1),
        b"x" * (MAX_HEADER + 1),
    ],
    ids=lambda data: repr(data[:30]),
)
async def test_bytes_that_hide_the_next_boundary_are_told_and_close_the_connection(data: bytes) -> None:
    async with connected({"echo": echo}) as both:
        await both.client.send({"id": 1, "method": "echo"}, data)
        assert (await both.client.answer(1))["result"] is None
        assert "closing the connection" in refusal(await both.client.receive(), None, ErrorCode.INVALID_REQUEST)
        assert await both.client.ended() == b""
        await both.served()


@pytest.mark.parametrize("rest", [b"", b"Content-Len", b'Content-Length: 10\r\n\r\n{"a'])
async def test_the_end_of_the_peers_bytes_ends_the_connection(rest: bytes) -> None:
    async with connected({"echo": echo}) as both:
        await both.client.send({"id": 1, "method": "echo"}, rest)
        assert (await both.client.answer(1))["result"] is None
        await both.theirs.aclose()
        assert await both.client.ended() == b""
        await both.served()


async def test_every_message_is_one_write_with_its_header() -> None:
    async with connected({"echo": echo}) as both:
        for number in range(5):
            await both.client.request("echo", ["x" * 20_000 * number])
        assert len(both.ours.outgoing.writes) == 5
        assert all(data.startswith(b"Content-Length: ") for data in both.ours.outgoing.writes)


async def test_a_peer_that_does_not_read_stops_the_notifications() -> None:
    sent = 0

    async def flood(params: Any) -> Any:
        nonlocal sent
        while True:
            await both.connection.notify("reportMutationTestProgress", {"text": "x" * 1000})
            sent += 1

    async with connected({"flood": flood, "echo": echo}, room=10_000) as both:
        await both.client.ask("flood")
        before = -1
        while sent > before:
            before = sent
            await asyncio.sleep(0.05)
        assert 5 < sent < 15
        for _ in range(100):
            await both.client.some_progress()
        assert sent > 90
