"""Connection: every message gets the answer of JSON-RPC 2.0, and none ends the connection."""

import asyncio
import json
from typing import Any

import pytest
from support.connected import connected
from support.msp_client import Client, framed

from msp_bridge.errors import ToolError
from msp_bridge.jsonrpc import connection
from msp_bridge.jsonrpc.connection import MAX_OPEN, Method
from msp_bridge.jsonrpc.framing import MAX_BODY, MAX_HEADER
from msp_bridge.jsonrpc.messages import MAX_PARTS, ErrorCode, RpcError, has_too_many_parts


async def echo(params: Any) -> Any:
    return params


async def answer_to(client: Client, body: bytes) -> dict[str, Any]:
    """The next message after `body`; and the connection must still work."""
    await client.send(framed(body))
    answer = await client.receive()
    assert await client.request("echo", ["still there"]) == ["still there"]
    return answer


def error_message(answer: dict[str, Any], id: Any, code: int) -> str:
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


@pytest.mark.parametrize("params", [{"a": [1, 2.5, None, True, "ü😀"]}, [], {}, [None], ["a\ud800b"]])
async def test_a_request_is_answered_with_its_result(params: Any) -> None:
    async with connected({"echo": echo}) as both:
        assert await both.client.request("echo", params) == params


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
        error_message(await answer_to(both.client, body), None, ErrorCode.PARSE_ERROR)


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
        error_message(await answer_to(both.client, json.dumps(message).encode()), id, ErrorCode.INVALID_REQUEST)


async def test_a_batch_is_an_error_that_says_what_to_send_instead() -> None:
    async with connected({"echo": echo}) as both:
        answer = await answer_to(both.client, b'[{"jsonrpc": "2.0", "id": 1, "method": "echo"}]')
        assert "batches are not supported; send each request" in error_message(answer, None, ErrorCode.INVALID_REQUEST)


@pytest.mark.parametrize(
    "method", ["", "discoverr", "$/unknown", "x" * 1_000_000, "\ud800"], ids=lambda method: method[:9]
)
async def test_the_error_for_an_unknown_method_names_the_known_ones(method: str) -> None:
    async with connected({"echo": echo, "other": echo}) as both:
        answer = await answer_to(both.client, json.dumps({"jsonrpc": "2.0", "id": 1, "method": method}).encode())
        assert "echo, other" in error_message(answer, 1, ErrorCode.METHOD_NOT_FOUND)


@pytest.mark.parametrize("data", [{}, {"data": {"why": [1]}}], ids=["without data", "with data"])
async def test_an_error_of_a_method_is_answered_with_code_message_and_data(data: dict[str, Any]) -> None:
    async def fail(params: Any) -> Any:
        raise RpcError(ErrorCode.REQUEST_FAILED, "do this instead", *data.values())

    async with connected({"fail": fail}) as both:
        await both.client.send({"id": 1, "method": "fail"})
        error = (await both.client.receive())["error"]
        assert error == {"code": -32803, "message": "do this instead", **data}


async def test_what_the_user_can_fix_is_answered_in_one_line_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def fail(params: Any) -> Any:
        raise ToolError("the tool is\ngone", "install it")

    async with connected({"fail": fail, "echo": echo}) as both:
        answer = await answer_to(both.client, b'{"jsonrpc": "2.0", "id": 1, "method": "fail"}')
        assert error_message(answer, 1, ErrorCode.REQUEST_FAILED) == "the tool is\\ngone: install it"
    assert caplog.messages == ["the tool is\ngone: install it"]


@pytest.mark.parametrize(
    "fault",
    [LookupError("secret detail"), ConnectionResetError("secret: the tool's worker is gone"), None],
    ids=["raised", "a broken connection of a tool's", "a result that is no JSON"],
)
async def test_an_internal_error_has_its_traceback_in_the_log_only(
    fault: Exception | None, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(params: Any) -> Any:
        if fault is not None:
            raise fault
        return object()

    async with connected({"fail": fail, "echo": echo}) as both:
        answer = await answer_to(both.client, b'{"jsonrpc": "2.0", "id": 1, "method": "fail"}')
        message = error_message(answer, 1, ErrorCode.INTERNAL_ERROR)
    assert "secret" not in message
    assert "log" in message
    assert str(fault or "Traceback") in caplog.text
    assert "Traceback" in caplog.text


@pytest.mark.parametrize("method", ["initialized", "$/setTrace", "echo", "", "$/cancelRequest"])
async def test_an_unknown_notification_is_ignored(method: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    async with connected({"echo": echo}) as both:
        await both.client.send({"method": method, "params": 5})
        assert await both.client.request("echo", [1]) == [1]
    logged = f"ignoring the unknown notification {method!r}" in caplog.messages
    assert logged is (method != "$/cancelRequest")


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


async def test_an_id_that_is_running_is_an_error_and_the_first_goes_on() -> None:
    go = asyncio.Event()

    async def wait(params: Any) -> Any:
        await go.wait()
        return "waited"

    async with connected({"wait": wait}) as both:
        await both.client.send({"id": 5, "method": "wait"}, {"id": 5, "method": "wait"})
        assert "already running" in error_message(await both.client.receive(), 5, ErrorCode.INVALID_REQUEST)
        go.set()
        assert await both.client.receive() == {"jsonrpc": "2.0", "id": 5, "result": "waited"}


async def test_too_many_requests_at_once_are_errors_and_the_others_are_served() -> None:
    go = asyncio.Event()

    async def wait(params: Any) -> Any:
        await go.wait()
        return "waited"

    async with connected({"wait": wait}) as both:
        await both.client.send(*({"id": number, "method": "wait"} for number in range(MAX_OPEN + 2)))
        for number in (MAX_OPEN, MAX_OPEN + 1):
            error_message(await both.client.receive(), number, ErrorCode.REQUEST_FAILED)
        go.set()
        answers = [await both.client.receive() for _ in range(MAX_OPEN)]
        assert {answer["id"] for answer in answers} == set(range(MAX_OPEN))
        assert all(answer["result"] == "waited" for answer in answers)
        await both.client.send({"id": "again", "method": "wait"})
        assert (await both.client.receive())["result"] == "waited"


async def test_a_request_is_an_error_while_too_many_bytes_are_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    async def big(params: Any) -> Any:
        return "x" * 10_000

    monkeypatch.setattr(connection, "MAX_UNREAD", 5000)
    async with connected({"big": big, "echo": echo}, room=1000) as both:
        first = await both.client.ask("big")
        while not both.ours.outgoing.writes:
            await asyncio.sleep(0)
        second = await both.client.ask("echo")
        await both.client.result(first)
        message = error_message(await both.client.answer(second), second, ErrorCode.REQUEST_FAILED)
        assert message.endswith(" bytes of answers are not read yet; read them first")
        assert await both.client.request("echo", [1]) == [1]


async def test_answers_that_are_not_read_count_as_open_requests() -> None:
    async with connected({"echo": echo}, room=10) as both:
        await both.client.send(*({"id": number, "method": "echo"} for number in range(MAX_OPEN + 1)))
        answers = [await both.client.receive() for _ in range(MAX_OPEN + 1)]
    errors = [answer["error"] for answer in answers if "error" in answer]
    remedy = "read those, wait for one of the requests, or cancel it"
    message = f"{MAX_OPEN} requests are running already, or have answers that are not read yet; {remedy}"
    assert errors == [{"code": ErrorCode.REQUEST_FAILED, "message": message}]


@pytest.mark.parametrize("last", [b"", b"nonsense\r\n\r\n"], ids=["a request", "what is no message"])
async def test_a_client_that_reads_no_error_is_disconnected(
    last: bytes, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(connection, "MAX_OPEN", 3)
    monkeypatch.setattr(connection, "REJECTION_TIMEOUT_S", 0.05)
    async with connected({"echo": echo}, room=10) as both:
        await both.client.send(*({"id": number, "method": "echo"} for number in range(3 if last else 10)), last)
        await both.served()
    if not last:
        problem = "the client has not read its answers, or its notifications are not done with, for 0.05 s"
        assert f"closing the connection: {problem}" in caplog.messages


class Steps:
    """Methods that record when they begin and end; `slow` ends when it may."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.may_end = asyncio.Event()
        self.methods = {"slow": Method(self._slow, sequential=True), "quick": Method(self._quick)}

    async def _slow(self, params: Any) -> Any:
        self.seen.append("slow begins")
        await self.may_end.wait()
        self.seen.append("slow ends")

    async def _quick(self, params: Any) -> Any:
        self.seen.append(f"quick {params}")


async def test_what_comes_behind_a_sequential_method_waits_for_its_end() -> None:
    steps = Steps()
    async with connected({**steps.methods, "echo": echo}) as both:
        await both.client.ask("quick", 1)
        await both.client.ask("slow")
        behind = [await both.client.ask("quick", 2), await both.client.ask("slow"), await both.client.ask("quick", 3)]
        while "slow begins" not in steps.seen:
            await asyncio.sleep(0)
        steps.may_end.set()
        for id in behind:
            await both.client.result(id)
    order = ["slow begins", "slow ends"]
    assert steps.seen == ["quick 1", *order, "quick 2", *order, "quick 3"]


async def test_a_request_that_is_cancelled_in_the_queue_lets_none_overtake() -> None:
    steps = Steps()
    async with connected(steps.methods) as both:
        await both.client.ask("slow")
        cancelled, behind = await both.client.ask("quick", "cancelled"), await both.client.ask("quick", "behind")
        await both.client.cancel(cancelled)
        assert (await both.client.answer(cancelled))["error"]["code"] == ErrorCode.REQUEST_CANCELLED
        assert steps.seen == ["slow begins"]
        steps.may_end.set()
        await both.client.result(behind)
    assert steps.seen == ["slow begins", "slow ends", "quick behind"]


async def test_a_sequential_method_is_cancelled_by_no_message() -> None:
    steps = Steps()
    async with connected(steps.methods) as both:
        ids = [await both.client.ask("slow"), await both.client.ask("slow")]
        for id in ids:
            await both.client.cancel(id)
        behind = await both.client.ask("quick")
        await both.client.cancel(behind)
        await both.client.answer(behind)
        await both.theirs.aclose()
        steps.may_end.set()
        for id in ids:
            assert await both.client.result(id) is None
    assert steps.seen == ["slow begins", "slow ends"] * 2


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
async def test_bytes_that_hide_the_next_boundary_close_the_connection(
    data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with connected({"echo": echo}) as both:
        await both.client.send({"id": 1, "method": "echo"}, data)
        answers = {answer["id"]: answer for answer in [await both.client.receive(), await both.client.receive()]}
        assert answers[1]["result"] is None
        reason, end, rest = error_message(answers[None], None, ErrorCode.INVALID_REQUEST).rpartition("; ")
        assert (end, rest) == ("; ", "closing the connection")
        assert f"closing the connection: {reason}" in caplog.messages
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


def text_of(value: object) -> bytes:
    return json.dumps(value).encode()


@pytest.mark.parametrize(
    ("body", "too_many"),
    [
        (text_of([[]] * (MAX_PARTS // 2)), False),
        (text_of([[]] * MAX_PARTS), True),
        (text_of({"text": ',[{\\"' * MAX_PARTS}), False),
        (text_of(["a"] * (MAX_PARTS // 2 - 1)), False),
        (text_of(["a"] * MAX_PARTS), True),
        (b'"' + b'\\"' * MAX_PARTS * 4, False),
        (b'"",' * MAX_PARTS, True),
    ],
    ids=range(7),
)
def test_a_message_may_have_a_million_parts_and_any_text(body: bytes, too_many: bool) -> None:
    assert has_too_many_parts(body) is too_many
