"""Memory of the server: after a million results, and while a client reads slowly."""

from __future__ import annotations

import time
from collections.abc import Callable

import psutil

from benchmarks.client import Client
from benchmarks.laboratory import Laboratory, RealProject
from benchmarks.measuring import Comparison, Series
from benchmarks.messages import bridge

RESULTS = 100_000  # of one request
REQUESTS = 10  # a million results
SLOW_RESULTS = 20_000
SLOW = 2_000_000  # bytes/s
MEGABYTE = 1e6


def measure(laboratory: Laboratory, project: RealProject, rounds: int | None) -> list[Comparison]:
    """Resident memory, each beside what it was before; always one round: memory hardly varies."""
    del rounds
    comparisons = []
    with bridge(laboratory, project, RESULTS) as client:
        idle = resident(client)
        after = []
        for _ in range(REQUESTS):
            test(client, RESULTS)
            after.append(resident(client))
    comparisons.append(
        Comparison(
            f"after {REQUESTS} \N{MULTIPLICATION SIGN} {RESULTS:,} results", "RSS MB",
            Series(after[1:]), "after the first", Series([after[0]] * (REQUESTS - 1)), "\N{LESS-THAN OR EQUAL TO} 1.05",
        )
    )  # fmt: skip
    comparisons.append(
        Comparison(f"after {RESULTS:,} results", "RSS MB", Series(after[:1]), "just started", Series([idle]))
    )
    fast, slow = (peak(laboratory, project, pace) for pace in (lambda _: None, lambda size: time.sleep(size / SLOW)))
    comparisons.append(
        Comparison(
            f"highest, client reads {SLOW / MEGABYTE:.0f} MB/s", "RSS MB",
            Series([slow]), "at full speed", Series([fast]), "\N{LESS-THAN OR EQUAL TO} 1.05",
        )
    )  # fmt: skip
    return comparisons


def peak(laboratory: Laboratory, project: RealProject, pace: Callable[[int], None]) -> float:
    """MB at the worst moment of one request, looked at after each read."""
    seen: list[float] = []

    def look(size: int) -> None:
        seen.append(resident(client))
        pace(size)

    with bridge(laboratory, project, SLOW_RESULTS) as client:
        client.pace = look
        test(client, SLOW_RESULTS)
    return max(seen)


def test(client: Client, expected: int) -> None:
    """One `mutationTest` of everything."""
    count = 0

    def progress(params: object) -> None:
        nonlocal count
        assert isinstance(params, dict)
        count += sum(len(file["mutants"]) for file in params["files"].values())

    client.request("mutationTest", {}, progress)
    assert count == expected, f"{count} results of {expected}"


def resident(client: Client) -> float:
    """MB."""
    size: int = psutil.Process(client.pid).memory_info().rss
    return size / MEGABYTE
