"""A Dask cluster of 1, 2 and 4 single-core workers on this machine beside the local pool, and what comes beyond.

The figures of a request are those of a warm one: the files are there, the adapters open, the tests measured. A worker
has a directory and a cache of its own. What 10, 100 and 1,000 workers would do is simulated, see `simulated`.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import logging
import os
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Awaitable, Sequence
from pathlib import Path
from typing import Any

from attrs import evolve, frozen

from benchmarks.laboratory import Laboratory, RealProject, SetUpFailed
from benchmarks.measuring import Comparison, Series, cpu_of
from msp_bridge.adapter import Adapter, Mutant, Project, Result, Scope
from msp_bridge.cluster import behind_cluster
from msp_bridge.cluster.chunks import Chunks
from msp_bridge.environment.distributions import installed, load
from msp_bridge.text import counted

ROUNDS = 3
WORKERS = (1, 2, 4)
SIMULATED = (10, 100, 1000)
MUTANTS = 100_000  # of the simulated project: those that were measured, in files as they are, again and again
LINK = 125_000_000  # bytes/s out of the client: a gigabit
ROUND_TRIP_S = 0.001
JOIN_S = 180
IDLE_S = 5  # in which scheduler, worker and client only keep their connections
END_S = 20
AT_LEAST = "\N{GREATER-THAN OR EQUAL TO}"


@frozen
class Measured:
    """What a cluster of some workers has cost, with the local pool of as many jobs."""

    warm_s: Sequence[float]
    local_s: Sequence[float]  # warm as well, each right after the one of the cluster
    cold_bytes: Sequence[int]  # to each worker with the first request
    warm_bytes: Sequence[int]
    mutants: int
    durations: Sequence[tuple[Mutant, float]]  # s
    scheduler_s: float  # of CPU for one mutant
    client_s: float


def measure(laboratory: Laboratory, project: RealProject, rounds: int | None) -> list[Comparison]:
    """One cluster after another; mutants are those of mutmut."""
    logging.getLogger("msp_bridge").setLevel(logging.ERROR)
    interpreter = laboratory.bridge(project, "distributed").with_name("python")
    measured = {}
    for workers in WORKERS:
        with laboratory.copy_of(project) as root, laboratory.directory() as directory:
            measured[workers] = asyncio.run(_measured(interpreter, root, directory, workers, rounds or ROUNDS))
    one = measured[1]
    comparisons = []
    for workers, cluster in measured.items():
        what, cores = f"{counted(workers, 'worker')}, {cluster.mutants} mutants", os.cpu_count() or 1
        ours, beside = _rates(cluster.mutants, cluster.warm_s), _rates(cluster.mutants, cluster.local_s)
        comparisons.append(Comparison(what, "mutants/s", ours, f"{counted(workers, 'job')} here", beside))
        if workers > 1:
            aim = f"{AT_LEAST} {0.9 * workers:.1f}" if workers <= cores else ""
            comparisons.append(Comparison(what, "mutants/s", ours, "1 worker", _rates(one.mutants, one.warm_s), aim))
        comparisons.append(Comparison(what, "kB to a worker, cold", Series([n / 1000 for n in cluster.cold_bytes])))
        comparisons.append(Comparison(what, "kB to a worker, warm", Series([n / 1000 for n in cluster.warm_bytes])))
    for who, seconds in (("client", one.client_s), ("scheduler", one.scheduler_s)):
        comparisons.append(Comparison("a mutant on a cluster", f"CPU ms of the {who}", Series([1000 * seconds])))
    for workers in SIMULATED:
        comparisons += _comparisons(workers, simulated(one, workers))
    return comparisons


def _rates(mutants: int, seconds: Sequence[float]) -> Series:
    return Series([mutants / one for one in seconds])


async def _measured(interpreter: Path, root: Path, directory: Path, workers: int, rounds: int) -> Measured:
    mutmut = load(installed()["mutmut"])
    project = Project(root=root, cache=directory / "local", python=interpreter, jobs=workers)
    async with _cluster(interpreter, directory, workers) as (address, scheduler):
        adapter_class = behind_cluster(mutmut, address, local=0)
        here = evolve(project, cache=directory / "client")
        async with _open(mutmut, project) as local, _open(adapter_class, here) as cluster:
            mutants = await _discovered(local)
            await _tested(local, mutants)
            known = await _discovered(cluster)
            await _tested(cluster, known)
            cold_bytes = [traffic.bytes for traffic in cluster.traffic.values()]
            idle = await _cpu(scheduler, asyncio.sleep(IDLE_S))
            warm_s, local_s, cpu = [], [], Cpu(0.0, 0.0, 0.0)
            for _ in range(rounds):
                testing = asyncio.create_task(_tested(cluster, known))
                cpu = cpu.plus(await _cpu(scheduler, testing))
                seconds, results = testing.result()
                warm_s.append(seconds)
                local_s.append((await _tested(local, mutants))[0])
            warm_bytes = [traffic.bytes for traffic in cluster.traffic.values()]
    durations = [(result.mutant, (result.duration or 0.0) / 1000) for result in results]
    scheduler_s, client_s = cpu.beyond(idle, rounds * len(known))
    return Measured(warm_s, local_s, cold_bytes, warm_bytes, len(mutants), durations, scheduler_s, client_s)


@frozen
class Cpu:
    """What scheduler and client have used in some time. All in s."""

    scheduler: float
    client: float
    wall: float

    def plus(self, other: Cpu) -> Cpu:
        """Both together."""
        return Cpu(self.scheduler + other.scheduler, self.client + other.client, self.wall + other.wall)

    def beyond(self, idle: Cpu, count: int) -> tuple[float, float]:
        """What each of `count` mutants has cost the scheduler and the client, without what both use anyway."""
        share = self.wall / idle.wall
        used = (self.scheduler - share * idle.scheduler, self.client - share * idle.client)
        return max(0.0, used[0]) / count, max(0.0, used[1]) / count


async def _cpu(scheduler: int, work: Awaitable[object]) -> Cpu:
    """What is used until `work` is done."""
    began, before, own = time.perf_counter(), cpu_of(scheduler), time.process_time()
    await work
    return Cpu(cpu_of(scheduler) - before, time.process_time() - own, time.perf_counter() - began)


@frozen
class Simulation:
    """Of a warm run with many workers. Times in s."""

    speed_up: float
    front_end: float  # the part of the run in which the busier one of client and scheduler is busy
    tail: float  # the part of the workers' time that is idle at the end
    sending_s: float  # until the last worker has a snapshot, which the client's link sends to each
    mutants: int


def simulated(measured: Measured, workers: int) -> Simulation:
    """What `workers` would do with `MUTANTS` mutants, by the chunks that `Chunks` gives them.

    A mutant takes a worker what it took the one that was measured, with that worker's share of what is between mutants.
    To hand out a chunk and to take its results is a turn of client and scheduler, which have a core each: it takes as
    long as the slower one needs CPU for it. (When they are late, several results come with one answer, and each costs
    less: that is not simulated.) A worker asks for a chunk when it begins the one before.
    """
    seconds = _costs(measured)
    chunks = Chunks.of(seconds)
    cost = max(measured.scheduler_s, measured.client_s)
    front_free = front_busy = 0.0
    free = dict.fromkeys(range(workers), 0.0)
    asking = [(0.0, worker) for worker in range(workers)]
    while asking:
        now, worker = heapq.heappop(asking)
        chunk = chunks.take(str(worker), workers)
        if not chunk:
            continue
        front_free = max(now, front_free) + cost * len(chunk)
        front_busy += cost * len(chunk)
        begun = max(free[worker], front_free + ROUND_TRIP_S)
        free[worker] = begun + sum(seconds[mutant] for mutant in chunk)
        heapq.heappush(asking, (begun, worker))
    end = max(free.values())
    idle = sum(end - one for one in free.values())
    sending = workers * max(measured.cold_bytes) / LINK
    return Simulation(sum(seconds.values()) / end, front_busy / end, idle / (end * workers), sending, len(seconds))


def _costs(measured: Measured) -> dict[Mutant, float]:
    total = sum(duration for _, duration in measured.durations)
    between = max(0.0, min(measured.warm_s) - total) / measured.mutants
    costs: dict[Mutant, float] = {}
    for copy in range(-(-MUTANTS // measured.mutants)):
        for mutant, duration in measured.durations:
            costs[evolve(mutant, path=f"{copy}/{mutant.path}")] = duration + between
    return costs


def _comparisons(workers: int, simulation: Simulation) -> list[Comparison]:
    what = f"simulated: {workers:,} workers, {simulation.mutants:,} mutants"
    return [
        Comparison(what, "times one worker", Series([simulation.speed_up]), aim=f"{AT_LEAST} {0.9 * workers:,.0f}"),
        Comparison(what, "% of the time client or scheduler is busy", Series([100 * simulation.front_end])),
        Comparison(what, "% of the workers' time idle in the tail", Series([100 * simulation.tail])),
        Comparison(what, "s to send each a snapshot", Series([simulation.sending_s])),
    ]


@contextlib.asynccontextmanager
async def _cluster(interpreter: Path, directory: Path, workers: int) -> AsyncIterator[tuple[str, int]]:
    """The address and the pid of a scheduler with so many workers."""
    from distributed import Client

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    address = f"tcp://127.0.0.1:{port}"
    with contextlib.ExitStack() as stack:
        place = ["--host", "127.0.0.1", "--no-dashboard"]
        scheduler = _start(stack, interpreter, directory / "scheduler", "dask_scheduler", "--port", port, *place)
        for number in range(workers):
            options = [address, "--nthreads", "1", "--no-nanny", *place]
            _start(stack, interpreter, directory / f"worker-{number}", "dask_worker", *options)
        try:
            async with Client(address, asynchronous=True, timeout=JOIN_S, set_as_default=False) as client:
                await client.wait_for_workers(workers, timeout=JOIN_S)
        except OSError as error:
            raise SetUpFailed(f"no cluster: {error}") from error
        yield address, scheduler


def _start(stack: contextlib.ExitStack, interpreter: Path, directory: Path, module: str, *arguments: str) -> int:
    directory.mkdir()
    log = stack.enter_context((directory / "log").open("wb"))
    own = {"MSP_BRIDGE_CACHE": str(directory / "cache"), "VIRTUAL_ENV": str(interpreter.parent.parent)}
    process = subprocess.Popen(
        [interpreter, "-m", f"distributed.cli.{module}", *arguments],
        cwd=directory,
        env={**os.environ, **own, "DASK_TEMPORARY_DIRECTORY": str(directory)},
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        start_new_session=True,  # a worker that gets Ctrl-C while its scheduler closes may never end
    )
    stack.callback(_end, process)
    return process.pid


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextlib.asynccontextmanager
async def _open(adapter_class: type[Adapter], project: Project) -> AsyncIterator[Any]:
    adapter = adapter_class.detect(project)
    if adapter is None:
        raise SetUpFailed(f"{adapter_class.absent(project).text}")
    async with contextlib.aclosing(adapter):
        yield adapter


async def _discovered(adapter: Adapter) -> list[Mutant]:
    async with contextlib.aclosing(adapter.discover(Scope())) as mutants:
        return [mutant async for mutant in mutants if isinstance(mutant, Mutant)]


async def _tested(adapter: Adapter, mutants: Sequence[Mutant]) -> tuple[float, list[Result]]:
    began = time.perf_counter()
    async with contextlib.aclosing(adapter.test(mutants)) as results:
        found = [result async for result in results if isinstance(result, Result)]
    assert len(found) == len(mutants), f"{len(found)} results for {len(mutants)} mutants"
    return time.perf_counter() - began, found
