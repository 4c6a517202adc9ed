"""Connection: notifications that a service takes, requests of ours to the peer, and what may not come yet."""

import asyncio
from typing import Any

import pytest
from support.connected import connected
from support.msp_client import Refused, framed

from msp_bridge.jsonrpc import connection, outgoing
from msp_bridge.jsonrpc.connection import Method, Service
from msp_bridge.jsonrpc.messages import Call, RpcError


class Text:
    """A text that notifications change, and a request reads."""

    def __init__(self) -> None:
        self.said: list[Any] = []
        self.opened = asyncio.Event()

    async def change(self, params: Any) -> None:
        self.said.append(params)

    async def slow(self, params: Any) -> None:
        self.said.append("begun")
        try:
            await self.opened.wait()
        finally:
            self.said.append("ended")

    async def fail(self, params: Any) -> None:
        raise RuntimeError("on purpose")

    async def read(self, params: Any) -> Any:
        return list(self.said)

    def service(self, **more: Any) -> Service:
        notifications = {
            "change": Method(self.change),
            "slow": Method(self.slow),
            "hold": Method(self.slow, sequential=True),
            "fail": Method(self.fail),
        }
        return Service({}, notifications, **more)


async def test_a_request_sees_what_the_notifications_before_it_changed() -> None:
    text = Text()
    async with connected({"read": text.read}, service=text.service()) as both:
        changes = [{"method": "change", "params": [number]} for number in range(20)]
        await both.client.send(*changes, {"id": 1, "method": "read"}, {"method": "change", "params": ["late"]})
        assert await both.client.result(1) == [[number] for number in range(20)]


async def test_only_a_sequential_notification_holds_up_what_is_behind_it() -> None:
    text = Text()
    async with connected({"read": text.read}, service=text.service()) as both:
        await both.client.send({"method": "slow"}, {"id": 1, "method": "read"})
        assert await both.client.result(1) == ["begun"]
        await both.client.send({"method": "hold"}, {"id": 2, "method": "read"})
        text.opened.set()
        assert (await both.client.result(2)).count("ended") >= 1


async def test_a_notification_is_never_answered_whatever_goes_wrong(caplog: pytest.LogCaptureFixture) -> None:
    text = Text()
    async with connected({"read": text.read}, service=text.service()) as both:
        await both.client.send({"method": "fail"}, {"method": "unknown"}, {"id": 1, "method": "read"})
        assert (await both.client.receive())["id"] == 1
    assert "fail failed" in caplog.text


async def test_a_notification_that_runs_is_cancelled_when_the_peer_leaves() -> None:
    text = Text()
    async with connected({"read": text.read}, service=text.service()) as both:
        await both.client.send({"method": "slow"}, {"id": 1, "method": "read"})
        await both.client.result(1)
    assert text.said == ["begun", "ended"]


async def test_a_peer_is_not_read_from_while_too_many_notifications_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "MAX_OPEN", 3)
    text = Text()
    async with connected({"read": text.read}, service=text.service()) as both:
        await both.client.send(*[{"method": "slow"}] * 4, {"id": 1, "method": "read"})
        await asyncio.sleep(0.05)
        assert text.said == ["begun"] * 3
        text.opened.set()
        assert (await both.client.result(1)).count("begun") == 4


async def test_what_may_not_come_yet_is_refused_or_dropped(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    text = Text()
    ready = False

    def admit(call: Call) -> None:
        if not ready:
            raise RpcError(-32002, f"{call.method} came too early")

    async with connected({"read": text.read}, service=text.service(admit=admit)) as both:
        await both.client.send({"method": "change", "params": ["early"]})
        for method in ("read", "unknown"):
            with pytest.raises(Refused, match=f"{method} came too early") as refused:
                await both.client.request(method)
            assert refused.value.code == -32002
        ready = True
        assert await both.client.request("read") == []
    assert caplog.messages == ["the notification change is dropped: change came too early"]


async def test_a_cancelled_request_is_answered_with_the_code_of_the_service() -> None:
    text = Text()
    async with connected({"slow": text.slow}, service=text.service(cancelled=-32000)) as both:
        id = await both.client.ask("slow")
        await both.client.cancel(id)
        assert (await both.client.answer(id))["error"]["code"] == -32000


async def test_the_peer_answers_requests_of_ours() -> None:
    async with connected() as both:
        asked = [asyncio.create_task(both.connection.request("ask", [number])) for number in range(3)]
        ids = {}
        for _ in asked:
            request = await both.client.receive()
            assert request["method"] == "ask"
            ids[request["params"][0]] = request["id"]
        await both.client.send({"id": ids[1], "result": "one"})
        await both.client.send({"id": ids[0], "error": {"code": -7, "message": "no"}}, {"id": "stray", "result": 1})
        await both.client.send(framed({"jsonrpc": "2.0", "id": ids[2], "error": "odd"}))
        results = await asyncio.gather(*asked, return_exceptions=True)
        assert [str(result) for result in results] == ["no", "one", "the peer's error is none: 'odd'"]


async def test_a_request_of_ours_fails_when_the_peer_leaves() -> None:
    async with connected() as both:
        asked = asyncio.create_task(both.connection.request("ask", None))
        await both.client.receive()
        await both.theirs.vanish()
        with pytest.raises(ConnectionError):
            await asked
        with pytest.raises(ConnectionError):
            await both.connection.request("ask", None)


@pytest.mark.parametrize("by_signal", [False, True])
async def test_what_cleans_up_sends_nothing_more_when_the_connection_closes(
    by_signal: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    began, refused = asyncio.Event(), asyncio.Event()

    async def job(params: Any) -> Any:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            with pytest.raises(ConnectionError):
                await both.connection.notify("late", "nobody reads it")
            refused.set()
            raise ConnectionResetError

    async with connected({"job": job}, room=1) as both:
        await both.client.ask("job")
        await began.wait()
        if by_signal:
            both.serving.cancel()
        else:
            await both.theirs.aclose()
        await both.served()
        assert refused.is_set()
    assert "job ends: the peer is gone" in caplog.messages


async def test_the_end_does_not_wait_for_a_peer_to_read_a_notification(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outgoing, "LAST_ANSWERS_S", 0.05)
    began, dropped = asyncio.Event(), asyncio.Event()

    async def job(params: Any) -> Any:
        began.set()
        with pytest.raises(ConnectionError):
            await both.connection.notify("early", "nobody reads it")
        dropped.set()

    async with connected({"job": Method(job, sequential=True)}, room=1) as both:
        await both.client.ask("job")
        await began.wait()
        await both.theirs.aclose()
        await both.served()
        assert dropped.is_set()


async def test_the_server_can_end_the_connection() -> None:
    text = Text()
    async with connected({"slow": text.slow}) as both:
        id = await both.client.ask("slow")
        while not text.said:
            await asyncio.sleep(0.01)
        both.connection.end()
        assert (await both.client.answer(id))["error"]["code"] == -32800
        await both.served()
