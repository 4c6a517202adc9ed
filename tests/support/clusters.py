"""A Dask scheduler and workers on loopback, each a process with a directory and a cache of its own, and a project for them."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any, Self

import psutil
from attrs import field, frozen

from msp_bridge.adapter import Adapter, Mutant, Project, Result
from msp_bridge.cluster import behind_cluster
from msp_bridge.cluster.connection import Bounds
from support.scripted.scripted_adapter import Scripted
from support.servers import ScriptedProject, until

TESTS = Path(__file__).parents[1]
FORKING = Path(__file__).with_name("forked_dask.py")
WAIT_S = 180.0  # for a process to be ready, on a machine that does much else
BOUNDS = Bounds(answer=20, ask=2, lease=20, join=30, end=20)
PLUS = {"mutator": "plus", "find": "+", "replacement": "-", "status": "Survived"}
DIGIT = {"mutator": "digit", "find": "1", "replacement": "2"}
GATED = DIGIT | {"after": "gate"}


@frozen
class Network:
    """What scheduler and workers speak, and by which port one is reached that listens at another."""

    protocol: str = "tcp"
    environment: Mapping[str, str] = field(factory=dict)  # Dask's settings for both
    reached: Callable[[int], int] = lambda port: port

    def place(self) -> tuple[str, str]:
        """A new address to listen at, and the one at which it is reached."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        return f"{self.protocol}://127.0.0.1:{port}", f"{self.protocol}://127.0.0.1:{self.reached(port)}"


class Cluster:
    """The scheduler's `address`, and the workers by name. Everything ends with `aclose`, however it is then."""

    def __init__(self, directory: Path, path: str = str(TESTS), network: Network | None = None) -> None:
        self._directory, self._path = directory, path
        self._network = network or Network()
        self._forking: dict[str, subprocess.Popen[str]] = {}  # by the path of their modules
        self.workers: dict[str, psutil.Process] = {}
        self.scheduler: psutil.Process | None = None
        self.address = ""

    @classmethod
    @contextlib.asynccontextmanager
    async def running(
        cls,
        directory: Path,
        workers: int = 2,
        *,
        path: str = str(TESTS),
        network: Network | None = None,
        **environment: str,
    ) -> AsyncIterator[Self]:
        """With workers called `w0`, `w1` …, and modules of theirs on `path`: usually the scripted adapter.

        `environment` is added to that of the workers.
        """
        cluster = cls(directory, path, network)
        try:
            await cluster._start_scheduler()
            for number in range(workers):
                cluster.start_worker(f"w{number}", **environment)
            await cluster.joined(workers)
            yield cluster
        finally:
            cluster.aclose()

    async def _start_scheduler(self) -> None:
        place, self.address = self._network.place()
        host, _, port = place.rpartition(":")
        self.scheduler = self._start("scheduler", "scheduler", "--host", host, "--port", port, "--no-dashboard")

    def start_worker(self, name: str, **environment: str) -> psutil.Process:
        """With a thread; `environment` is added to this process's."""
        listens, reached = self._network.place()
        place = ["--listen-address", listens, "--contact-address", reached]
        options = ["--name", name, "--nthreads", "1", "--no-nanny", "--no-dashboard"]
        self.workers[name] = self._start(name, "worker", self.address, *place, *options, **environment)
        return self.workers[name]

    async def joined(self, count: int) -> None:
        """Until the scheduler has so many workers, and no more."""
        from distributed import Client

        async with asyncio.timeout(WAIT_S):
            async with Client(self.address, asynchronous=True, timeout=WAIT_S, set_as_default=False) as client:
                while len(await client.nthreads()) != count:
                    await asyncio.sleep(0.02)

    async def restore(self, count: int) -> None:
        """Have the workers `w0`, `w1` … and no others again, whatever became of them."""
        wanted = [f"w{number}" for number in range(count)]
        for name in [*self.workers]:
            if name in self.alive():
                self.workers[name].send_signal(signal.SIGCONT)
            if name not in wanted:
                self.kill(name)
                del self.workers[name]
        await self.joined(len(self.alive()))
        for name in set(wanted).difference(self.alive()):
            self.start_worker(name)
        await self.joined(count)
        await until(lambda: not any(self.below(name) for name in wanted), "what they were at ends")

    def cache(self, name: str) -> Path:
        """Where a worker keeps snapshots."""
        return self._directory / name / "cache" / "cluster"

    def below(self, name: str) -> list[psutil.Process]:
        """The processes that a worker has started, and theirs."""
        with contextlib.suppress(psutil.NoSuchProcess):
            return psutil.Process(self.workers[name].pid).children(recursive=True)
        return []

    def alive(self) -> list[str]:
        """The names of the workers that have not ended."""
        return [name for name, process in self.workers.items() if process.is_running()]

    def kill(self, name: str) -> None:
        """SIGKILL, as when a machine vanishes."""
        with contextlib.suppress(psutil.NoSuchProcess):
            self.workers[name].kill()
        self.workers[name].wait()

    def aclose(self) -> None:
        """End everything, the workers first: one that ends takes leave of its scheduler, and waits for one that is gone."""
        for processes in ([*self.workers.values()], [self.scheduler] if self.scheduler else []):
            for process in processes:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.send_signal(signal.SIGCONT)
                    process.terminate()
            for process in psutil.wait_procs(processes, timeout=20)[1]:
                process.kill()
                process.wait()
        for forking in self._forking.values():
            forking.communicate()

    def _start(self, name: str, command: str, *arguments: str, **environment: str) -> psutil.Process:
        variables = {**os.environ, "PYTHONPATH": self._path, **self._network.environment, **environment}
        directory = self._directory / name
        directory.mkdir(parents=True, exist_ok=True)
        variables["DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED"] = "False"  # it looks at each thread 100 times a second
        variables |= {"MSP_BRIDGE_CACHE": str(directory / "cache"), "DASK_TEMPORARY_DIRECTORY": str(directory)}
        return self._forked((command, arguments, str(directory), variables, str(directory / "log")), variables)

    def _forked(self, asked: object, variables: dict[str, str]) -> psutil.Process:
        path = variables["PYTHONPATH"]
        if path not in self._forking:
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
            self._forking[path] = subprocess.Popen([sys.executable, FORKING], env=variables, text=True, **pipes)
        stdin, stdout = self._forking[path].stdin, self._forking[path].stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps(asked) + "\n")
        stdin.flush()
        return psutil.Process(int(stdout.readline()))


class ScriptedTree(ScriptedProject):
    """A project of the scripted adapter. What its copies on the workers do is written to one log."""

    def files(self, count: int, text: str) -> None:
        for number in range(count):
            (self.root / f"f{number}.py").write_text(text)

    @contextlib.asynccontextmanager
    async def adapter(self, cluster: Cluster, bounds: Bounds = BOUNDS, **fields: Any) -> AsyncIterator[Adapter]:
        adapter_class = behind_cluster(Scripted, cluster.address, local=0, bounds=bounds)
        adapter = adapter_class.detect(Project(root=self.root, cache=self.root.parent / "cache", **fields))
        assert adapter is not None
        async with contextlib.aclosing(adapter):
            yield adapter


def once_each(results: list[Result], mutants: list[Mutant]) -> bool:
    return Counter(result.mutant for result in results) == Counter(mutants)
