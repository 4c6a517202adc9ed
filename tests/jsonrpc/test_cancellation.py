"""Cancelling: the answer leaves when the cleaning up is done, once, whenever the cancel comes."""

import asyncio
from typing import Any

import pytest
from support.connected import connected
from support.msp_client import framed

from msp_bridge.jsonrpc.messages import ErrorCode
from msp_bridge.jsonrpc.outgoing import LAST_ANSWERS_S


class Job:
    """A method that runs until it is cancelled, and takes its time to clean up."""

    def __init__(self) -> None:
        self.started, self.cleaning, self.may_end = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.cancels = 0
        self.ended = False

    async def __call__(self, params: Any) -> Any:
        self.started.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.cleaning.set()
            while not self.may_end.is_set():
                try:
                    await self.may_end.wait()
                except asyncio.CancelledError:
                    self.cancels += 1
            self.ended = True


async def echo(params: Any) -> Any:
    return params


def cancelled(answer: dict[str, Any], id: Any) -> None:
    assert answer["id"] == id
    assert answer["error"] == {"code": ErrorCode.REQUEST_CANCELLED, "message": "job was cancelled"}


def cancel(id: Any) -> dict[str, Any]:
    return {"method": "$/cancelRequest", "params": {"id": id}}


@pytest.mark.parametrize("again", [0, 2], ids=["once", "three times"])
async def test_a_cancelled_request_is_answered_after_it_has_cleaned_up(again: int) -> None:
    job = Job()
    async with connected({"job": job, "echo": echo}) as both:
        await both.client.send({"id": 1, "method": "job"})
        await job.started.wait()
        await both.client.send(cancel(1))
        await job.cleaning.wait()
        await both.client.send(*[cancel(1)] * again, {"id": 2, "method": "echo"})
        assert (await both.client.receive())["id"] == 2
        job.may_end.set()
        cancelled(await both.client.receive(), 1)
        assert (job.ended, job.cancels) == (True, 0)


async def test_a_request_and_its_cancel_in_one_chunk_are_answered() -> None:
    job = Job()
    job.may_end.set()
    async with connected({"job": job}) as both:
        await both.client.send({"id": 1, "method": "job"}, cancel(1))
        cancelled(await both.client.receive(), 1)


async def test_many_requests_and_cancels_in_one_chunk_get_one_answer_each() -> None:
    async def job(params: Any) -> Any:
        for _ in range(params):
            await asyncio.sleep(0)
        return "done"

    async with connected({"job": job, "echo": echo}) as both:
        messages = [
            message
            for number in range(100)
            for message in ({"id": number, "method": "job", "params": number % 7}, cancel(number))
        ]
        await both.client.send(*messages, {"id": "last", "method": "echo"})
        answers = [await both.client.receive() for _ in range(101)]
        assert sorted(str(answer["id"]) for answer in answers) == sorted([*map(str, range(100)), "last"])
        for answer in answers:
            if "error" in answer:
                assert answer["error"]["code"] == ErrorCode.REQUEST_CANCELLED


@pytest.mark.parametrize("id", [1, "1", 1.5, "ü"])
async def test_a_cancel_names_its_request_by_the_very_same_id(id: Any) -> None:
    job = Job()
    job.may_end.set()
    async with connected({"job": job}) as both:
        await both.client.send({"id": id, "method": "job"})
        await job.started.wait()
        await both.client.send(cancel(id))
        cancelled(await both.client.receive(), id)


@pytest.mark.parametrize(
    "params",
    [None, {}, [], [1], 1, {"id": None}, {"id": True}, {"id": [1]}, {"id": {}}, {"id": 99}, {"ID": 1}, {"id": "1"}],
)
async def test_a_cancel_of_nothing_that_runs_does_nothing(params: Any) -> None:
    job = Job()
    job.may_end.set()
    async with connected({"job": job, "echo": echo}) as both:
        await both.client.send({"id": 1, "method": "job"}, {"method": "$/cancelRequest", "params": params})
        await both.client.send({"id": 2, "method": "echo"})
        assert (await both.client.receive())["id"] == 2
        assert not job.cleaning.is_set()


async def test_a_cancel_after_the_answer_spares_the_next_request_of_that_id() -> None:
    job = Job()
    job.may_end.set()
    async with connected({"job": job, "echo": echo}) as both:
        await both.client.send({"id": 1, "method": "echo"}, cancel(1))
        assert (await both.client.receive())["result"] is None
        await both.client.send(cancel(1), {"id": 1, "method": "job"})
        await job.started.wait()
        await both.client.send({"id": 2, "method": "echo"})
        assert (await both.client.receive())["id"] == 2
        assert not job.cleaning.is_set()


async def test_a_cancel_while_the_answer_is_being_written_comes_too_late() -> None:
    async def big(params: Any) -> Any:
        return "x" * 100_000

    async with connected({"big": big, "echo": echo}, room=1000) as both:
        await both.client.send({"id": 1, "method": "big"}, cancel(1))
        await both.client.send(cancel(1), {"id": 2, "method": "echo"})
        assert (await both.client.answer(1))["result"] == "x" * 100_000
        assert (await both.client.answer(2))["id"] == 2


async def test_a_peer_that_leaves_during_the_cleaning_up_does_not_disturb_it() -> None:
    job = Job()
    async with connected({"job": job}) as both:
        await both.client.send({"id": 1, "method": "job"})
        await job.started.wait()
        await both.client.send(cancel(1))
        await job.cleaning.wait()
        await both.theirs.aclose()
        while not both.ours.incoming._ended or both.ours.incoming._data:
            await asyncio.sleep(0)
        for _ in range(10):
            await asyncio.sleep(0)
        assert not both.serving.done()
        job.may_end.set()
        await both.served()
        assert job.cancels == 0


@pytest.mark.parametrize("crash", [True, False])
async def test_a_peer_that_leaves_cancels_what_it_had_running_and_may_still_read_the_answers(crash: bool) -> None:
    jobs = [Job(), Job()]
    async with connected({"one": jobs[0], "two": jobs[1]}) as both:
        await both.client.send({"id": 1, "method": "one"}, {"id": 2, "method": "two"})
        for job in jobs:
            await job.started.wait()
        await (both.theirs.vanish() if crash else both.theirs.aclose())
        for job in jobs:
            await job.cleaning.wait()
        assert not both.serving.done(), "serve returns when everything has ended, not before"
        for job in jobs:
            job.may_end.set()
        if not crash:  # it has only closed its side
            answers = [await both.client.receive() for _ in jobs]
            assert [answer["error"]["code"] for answer in answers] == [ErrorCode.REQUEST_CANCELLED] * 2
        await both.served()
        assert all(job.ended for job in jobs)


async def test_a_peer_that_closes_its_side_and_reads_nothing_is_soon_dropped() -> None:
    async def big(params: Any) -> Any:
        return "x" * 100_000

    async with connected({"big": big}, room=1000) as both:
        await both.client.send({"id": 1, "method": "big"}, {"id": 2, "method": "big"})
        await both.theirs.aclose()
        async with asyncio.timeout(LAST_ANSWERS_S * 10):
            await both.served()


async def test_a_notification_to_a_peer_that_does_not_read_can_be_cancelled() -> None:
    async def flood(params: Any) -> Any:
        while True:
            await both.connection.notify("reportMutationTestProgress", {"text": "x" * 1000})

    async with connected({"flood": flood, "echo": echo}, room=5000) as both:
        await both.client.send({"id": 1, "method": "flood"})
        await both.client.some_progress()
        await both.client.send(cancel(1))
        assert (await both.client.answer(1))["error"]["code"] == ErrorCode.REQUEST_CANCELLED


async def test_ending_the_connection_itself_waits_for_the_cleaning_up() -> None:
    job = Job()
    async with connected({"job": job}) as both:
        await both.client.send({"id": 1, "method": "job"})
        await job.started.wait()
        both.serving.cancel()
        await job.cleaning.wait()
        assert not both.serving.done()
        job.may_end.set()
        await both.served()
        assert both.serving.cancelled()
        assert job.ended


async def test_a_method_that_is_cancelled_from_within_is_no_silent_death() -> None:
    async def odd(params: Any) -> Any:
        raise asyncio.CancelledError

    async with connected({"odd": odd, "echo": echo}) as both:
        await both.client.send(framed({"jsonrpc": "2.0", "id": 1, "method": "odd"}))
        error = (await both.client.receive())["error"]
        assert error["code"] == ErrorCode.INTERNAL_ERROR
        assert "inside msp-bridge (CancelledError)" in error["message"]
        assert await both.client.request("echo", [1]) == [1]
