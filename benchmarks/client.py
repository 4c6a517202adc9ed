"""Client: an MSP client over a server's stdio that does little itself, so that the server is what is measured."""

from __future__ import annotations

import contextlib
import itertools
import os
import subprocess
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from attrs import frozen

from msp_bridge.jsonrpc.framing import FrameDecoder, frame
from msp_bridge.jsonrpc.messages import dump, parse

CHUNK = 256 * 1024
WORDS = 2000  # characters of a server's stderr that an error shows

Progress = Callable[[Any], None]  # the params of one notification


Reported = tuple[str, dict[str, Any]]  # the path of a file, and a mutant as the protocol has it


class ServerFailed(Exception):
    """The server answered with an error, or ended."""


@frozen
class Spent:
    """What a process has cost in its whole life: seconds; CPU with the children that it has waited for."""

    wall: float
    cpu: float


class Client:
    """A server process and the one conversation with it. Nothing is read but while a request waits."""

    def __init__(self, argv: Sequence[str | Path], cwd: Path, env: Mapping[str, str] | None = None) -> None:
        self._began = time.perf_counter()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  closed by `end`
        self._process = subprocess.Popen(
            argv,
            cwd=cwd,
            env={**os.environ, **(env or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            bufsize=0,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        self._decoder = FrameDecoder()
        self._waiting: deque[bytes] = deque()
        self._ids = itertools.count(1)
        self.pace: Callable[[int], None] = lambda _: None  # called with the number of bytes after each read

    @classmethod
    @contextlib.contextmanager
    def of(cls, argv: Sequence[str | Path], cwd: Path, env: Mapping[str, str] | None = None) -> Iterator[Self]:
        """A client whose server is ended with the block."""
        client = cls(argv, cwd, env)
        try:
            yield client
        finally:
            client.end()

    @property
    def pid(self) -> int:
        """Of the server."""
        return self._process.pid

    def request(self, method: str, params: Any, progress: Progress = lambda _: None) -> Any:
        """The result; what is reported meanwhile goes to `progress`. Raises ServerFailed."""
        id = next(self._ids)
        self._stdin.write(frame(dump({"jsonrpc": "2.0", "id": id, "method": method, "params": params})))
        while True:
            message = parse(self._message())
            if "method" in message:
                progress(message.get("params"))
            elif "error" in message:
                raise ServerFailed(f"{method}: {message['error']['message']}")
            else:
                return message["result"]

    def timed(self, method: str, params: dict[str, Any]) -> tuple[float, list[Reported]]:
        """Seconds until the answer, and the results that were reported until then. Raises ServerFailed."""
        results: list[Reported] = []

        def take(progress: Any) -> None:
            results.extend((path, mutant) for path, file in progress["files"].items() for mutant in file["mutants"])

        began = time.perf_counter()
        self.request(method, params, take)
        return time.perf_counter() - began, results

    def notify(self, method: str, params: Any) -> None:
        """Send a notification."""
        self._stdin.write(frame(dump({"jsonrpc": "2.0", "method": method, "params": params})))

    def until(self, wanted: Callable[[Any], bool]) -> None:
        """Returns when a message has come that is `wanted`. Raises ServerFailed."""
        while not wanted(parse(self._message())):
            pass

    def end(self) -> Spent:
        """Say goodbye; returns when the process has ended. May be called again."""
        if self._process.returncode is None:
            self._stdin.close()
            _, status, usage = os.wait4(self.pid, 0) if self._ends_by_itself() else self._killed()
            self._process.returncode = os.waitstatus_to_exitcode(status)
            self._stdout.close()
            self._errors.close()
            self._spent = Spent(time.perf_counter() - self._began, usage.ru_utime + usage.ru_stime)
        return self._spent

    def _ends_by_itself(self) -> bool:
        """Whether the end of stdin is enough; for StrykerJS it isn't."""
        deadline = time.monotonic() + 3.0
        while time.monotonic() < deadline:
            if os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
                return True
            time.sleep(0.002)
        return False

    def _killed(self) -> tuple[int, int, Any]:
        os.kill(self.pid, 9)
        return os.wait4(self.pid, 0)

    def _message(self) -> bytes:
        while not self._waiting:
            data = os.read(self._stdout.fileno(), CHUNK)
            if not data:
                raise ServerFailed(f"the server has ended: {self._last_words()}")
            self.pace(len(data))
            self._waiting.extend(self._decoder.feed(data))
        return self._waiting.popleft()

    def _last_words(self) -> str:
        self._errors.seek(0)
        return self._errors.read().decode("utf-8", "replace")[-WORDS:]


def selected(result: Reported) -> dict[str, Any]:
    """The `mutants` of a request for this one."""
    path, mutant = result
    return {path: {"mutants": [{key: mutant[key] for key in ("id", "location", "mutatorName", "replacement")}]}}


def run(argv: Sequence[str | Path], cwd: Path, env: Mapping[str, str] | None = None) -> tuple[Spent, str]:
    """Run a command to its end: what it cost, and its output. Raises ServerFailed when its exit code isn't 0."""
    began = time.perf_counter()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            argv, cwd=cwd, env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read().decode("utf-8", "replace")
    if process.returncode:
        raise ServerFailed(f"{' '.join(map(str, argv))} ended with {process.returncode}: {text[-WORDS:]}")
    return Spent(wall, usage.ru_utime + usage.ru_stime), text


def plain_pytest(bridge: Path, root: Path, *arguments: str | Path) -> Spent:
    """Run pytest by itself, in the environment of `bridge`; a library that is not installed is found."""
    env = {"PYTHONPATH": os.pathsep.join([str(root / "src"), str(root)])}
    return run([bridge.with_name("python"), "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments], root, env)[0]
