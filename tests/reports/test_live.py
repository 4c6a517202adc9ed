"""The live page: everything for everybody, at their own pace, for nobody else, and gone with the run."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from support.chromium import needs_chromium, tab
from support.viewers import killed, mutant, reported, survived

from msp_bridge.jsonrpc.messages import dump
from msp_bridge.model import Result, Status
from msp_bridge.reports.html import EVENTS, page
from msp_bridge.reports.live import LivePage
from msp_bridge.reports.standard import outcome

PAGE = b"<p>the page</p>"


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


@contextlib.asynccontextmanager
async def listening(
    session: aiohttp.ClientSession, live: LivePage, **headers: str
) -> AsyncIterator[AsyncIterator[tuple[str, str, Any]]]:
    """The events as a browser takes them: number, name, data. Hangs up after `finished`, as the viewer does."""
    async with session.get(live.url + EVENTS, headers=headers) as response:
        assert response.headers["Content-Type"] == "text/event-stream"
        yield events_of(response)


async def events_of(response: aiohttp.ClientResponse) -> AsyncIterator[tuple[str, str, Any]]:
    fields: dict[str, str] = {}
    async for line in response.content:
        name, _, value = line.decode().rstrip("\n").partition(": ")
        if name:
            fields[name] = value
        else:
            yield fields["id"], fields["event"], json.loads(fields["data"])
            if fields["event"] == "finished":
                return


async def test_the_page_is_at_its_url_on_this_machine_and_nothing_else_is(session: aiohttp.ClientSession) -> None:
    async with LivePage(PAGE) as live:
        assert live.url.startswith("http://127.0.0.1:")
        async with session.get(live.url) as response:
            assert (response.status, await response.read()) == (200, PAGE)
            assert response.content_type == "text/html"
        root = live.url.removesuffix("/").rpartition("/")[0]
        for url in (f"{root}/", live.url.removesuffix("/"), f"{live.url}report.json", f"{root}/{EVENTS}"):
            async with session.get(url) as response:
                assert response.status == 404


@pytest.mark.parametrize(("host", "status"), [("evil.example", 403), ("localhost", 200), ("127.0.0.1", 200)])
async def test_a_site_that_has_made_its_name_ours_gets_nothing(
    session: aiohttp.ClientSession, host: str, status: int
) -> None:
    async with LivePage(PAGE) as live:
        port = live.url.split(":")[2].split("/")[0]
        async with session.get(live.url, headers={"Host": f"{host}:{port}"}) as response:
            assert response.status == status


async def test_results_arrive_as_they_come(session: aiohttp.ClientSession) -> None:
    async with LivePage(PAGE) as live, listening(session, live) as events:
        for number, result in enumerate([killed(killed_by=("test_a",)), survived("b.py")], 1):
            live.show(outcome(result))
            assert await anext(events) == (str(number), "mutant-tested", outcome(result))


async def test_one_who_comes_late_gets_everything_so_far(session: aiohttp.ClientSession) -> None:
    results = [survived("a.py", line) for line in range(1, 1001)]
    async with LivePage(PAGE) as live:
        for result in results:
            live.show(outcome(result))
        async with listening(session, live) as events:
            got = [await anext(events) for _ in results]
    assert [data["id"] for _, _, data in got] == [result.mutant.id for result in results]


async def test_one_who_lost_the_connection_goes_on_where_it_was(session: aiohttp.ClientSession) -> None:
    async with LivePage(PAGE) as live:
        for line in (1, 2, 3):
            live.show(outcome(survived("a.py", line)))
        async with listening(session, live, **{"Last-Event-ID": "2"}) as events:
            number, _, data = await anext(events)
    assert (number, data["id"]) == ("3", mutant("a.py", 3).id)


async def test_the_end_of_the_run_waits_until_a_page_has_the_last_result(session: aiohttp.ClientSession) -> None:
    names = []

    async def listen() -> None:
        async with listening(session, live) as events:
            names.extend([name async for _, name, _ in events])

    live = LivePage(PAGE)
    async with live:
        listener = asyncio.create_task(listen())
        await live._came.wait()
        live.show(outcome(survived()))
    await listener
    assert names == ["mutant-tested", "finished"]


async def test_a_browser_that_is_slow_to_open_still_finds_a_short_run(session: aiohttp.ClientSession) -> None:
    async def open_late() -> list[str]:
        await finishing.wait()
        async with session.get(live.url) as response:
            assert await response.read() == PAGE
        async with listening(session, live) as events:
            return [name async for _, name, _ in events]

    finishing = asyncio.Event()
    live = LivePage(PAGE)
    async with live:
        live.awaited = True
        browser = asyncio.create_task(open_late())
        live.show(outcome(survived()))
        finishing.set()
    assert await browser == ["mutant-tested", "finished"]


async def asked_for_events(live: LivePage, **options: Any) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection of which a test reads what it wants, if it does."""
    host, _, path = live.url.removeprefix("http://").partition("/")
    reader, writer = await asyncio.open_connection("127.0.0.1", int(host.split(":")[1]), **options)
    writer.write(f"GET /{path}{EVENTS} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    return reader, writer


async def test_a_page_that_never_reads_holds_up_neither_the_run_nor_its_end() -> None:
    live = LivePage(PAGE, leaving=0.1)
    async with live:
        _, writer = await asked_for_events(live, limit=1)
        await live._came.wait()
        for line in range(20_000):
            live.show(outcome(survived("a.py", line + 1, "x", status_reason="y" * 1000)))
            if line % 1000 == 0:
                await asyncio.sleep(0)
    writer.close()


async def test_an_interrupted_run_gives_a_page_that_stays_the_last_results_and_goes() -> None:
    async def run() -> None:
        async with live:
            live.awaited = True
            begun.set()
            await asyncio.Event().wait()

    live, begun = LivePage(PAGE, opening=3600, leaving=3600, interrupted=0.2), asyncio.Event()
    running = asyncio.create_task(run())
    await begun.wait()
    reader, writer = await asked_for_events(live)
    live.show(outcome(survived()))
    await reader.readuntil(b"event: mutant-tested")
    running.cancel()
    live.show(outcome(survived(status_reason="the last one")))
    await reader.readuntil(b"the last one")
    await reader.readuntil(b"event: finished")
    with pytest.raises(asyncio.CancelledError):  # though nobody has hung up
        await running
    writer.close()


async def test_nothing_listens_when_the_run_is_over(session: aiohttp.ClientSession) -> None:
    async with LivePage(PAGE) as live:
        pass
    with pytest.raises(aiohttp.ClientConnectionError):
        await session.get(live.url)


async def test_a_run_that_fails_waits_for_no_browser() -> None:
    async def fail(live: LivePage) -> None:
        async with live:
            live.awaited = True
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail(LivePage(PAGE, opening=3600))


@needs_chromium
async def test_a_browser_shows_the_results_as_they_come(tmp_path: Path) -> None:
    tested = [killed("src/cart.py"), survived("src/cart.py", 1, "*"), killed("src/cart.py", 1, "/")]
    pending = [Result(result.mutant, Status.PENDING) for result in tested]
    report = reported(tmp_path / "shop", *pending)
    live = LivePage(page(dump(report), "Mutation report of shop", live=True))
    async with tab(tmp_path) as browser:
        async with live:
            live.show(outcome(tested[0]))  # before the page is open
            await browser.go(live.url + "#mutant/cart.py")
            text = await browser.until("Killed ( 1 )")
            assert "Survived (" not in text
            live.show(outcome(tested[1]))
            await browser.until("Killed ( 1 )", "Survived ( 1 )")
            live.show(outcome(tested[2]))
        await browser.until("Killed ( 2 )", "Survived ( 1 )", "66.67")
