"""Runs the test command in a sandbox, with other contents for some files meanwhile. Imports nothing but Python's own.

A question: `argv`, `timeout` (s), `env` (None: unset), `files` (path to [digest or null, base64]), `report`. Its
answer: `outcome`, `returncode`, `duration` (ms), `stdout` and `stderr` (their ends), `report`. Outcomes, as cosmic-ray
has them: `passed`, `failed`, `timeout`, `unable`; and `stale` when a file isn't the one that was mutated, `unwritable`
(with `errno` and `error`) when a file can't be.
Killed at any moment it leaves mutated files: the sandbox must be refreshed before it is used again.
"""

from __future__ import annotations

import base64
import codecs
import contextlib
import hashlib
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from typing import IO, Any

from msp_bridge_in_project.python_engine.programs.channel import READY, Channel, Message

TAIL = 16 * 1024  # bytes of output that are kept
LEFT_BEHIND = 1.0  # s to wait for the end of output that some escaped process holds open


class Stale(Exception):
    """A file isn't what the mutant was made for."""


class OutputReader(threading.Thread):
    """Reads one stream of the tests to its end, keeps the tail, and records whether all of it is UTF-8."""

    def __init__(self, stream: IO[bytes]) -> None:
        super().__init__(daemon=True)
        self.stream, self.tail, self.text = stream, bytearray(), True
        self.start()

    def run(self) -> None:
        """Read to the end."""
        decoder = codecs.getincrementaldecoder("utf-8")()
        while data := os.read(self.stream.fileno(), 1 << 16):
            self.tail += data
            del self.tail[:-TAIL]
            try:
                decoder.decode(data)
            except UnicodeDecodeError:
                self.text = False
                decoder.reset()

    def end(self) -> str:
        """Return what was read; an escaped process may keep the stream open for ever."""
        self.join(LEFT_BEHIND)
        if not self.is_alive():
            self.stream.close()
        return bytes(self.tail).decode("utf-8", "replace")


@contextlib.contextmanager
def overwritten(files: dict[str, list[str]]) -> Iterator[None]:
    """The given contents instead of the files' own, which come back with their times.

    A file gets a time that follows from its content, in the 1990s, so that no bytecode that was compiled from other
    content of the same size can be taken for its own.
    """
    before = []
    try:
        for path, (digest, encoded) in files.items():
            try:
                with open(path, "rb") as file:
                    original, status = file.read(), os.fstat(file.fileno())
            except OSError as error:
                raise Stale(path) from error
            if digest is not None and hashlib.blake2b(original, digest_size=16).hexdigest() != digest:
                raise Stale(path)
            before.append((path, original, status))
            content = base64.b64decode(encoded)
            seconds = (1 << 29) + int.from_bytes(hashlib.blake2b(content, digest_size=4).digest(), "big") % (1 << 29)
            seconds += seconds == int(status.st_mtime)
            write(path, content, seconds * 10**9, seconds * 10**9)
        yield
    finally:
        for path, original, status in before:
            write(path, original, status.st_atime_ns, status.st_mtime_ns)


def write(path: str, content: bytes, accessed: int, modified: int) -> None:
    """Write a file anew, even where the tests have removed it, and set its times (ns)."""
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "wb") as file:
        file.write(content)
    os.utime(path, ns=(accessed, modified))


def kill(process: subprocess.Popen[bytes]) -> None:
    """End the tests and what they started; the process hasn't been reaped, so its group is its own."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (AttributeError, OSError):  # no groups on this system, or nobody left
        process.kill()


def finish(process: subprocess.Popen[bytes], timeout: float) -> bool:
    """Wait for the tests, at most `timeout` seconds; whether they had to be killed."""
    expired = threading.Event()

    def expire() -> None:
        expired.set()
        kill(process)

    timer = threading.Timer(timeout, expire)
    timer.daemon = True
    timer.start()
    if hasattr(os, "waitid"):  # without reaping: `process.wait(timeout)` polls, and costs up to 50 ms each time
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    else:
        process.wait()
    timer.cancel()
    timer.join()
    kill(process)
    process.wait()
    return expired.is_set()


def run(request: Message) -> Message:
    """Run the tests once."""
    environment = {**os.environ, **request["env"]}
    started = time.perf_counter()
    try:
        process = subprocess.Popen(
            request["argv"],
            env={name: value for name, value in environment.items() if value is not None},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except Exception as error:  # cosmic-ray: incompetent
        return {"outcome": "unable", "returncode": None, "duration": 0.0, "stdout": "", "stderr": str(error)}
    assert process.stdout is not None
    assert process.stderr is not None
    outputs = OutputReader(process.stdout), OutputReader(process.stderr)
    expired = finish(process, request["timeout"])
    duration = (time.perf_counter() - started) * 1000
    stdout, stderr = outputs[0].end(), outputs[1].end()
    if expired:
        outcome = "timeout"
    elif not outputs[0].text:  # cosmic-ray fails to decode it: incompetent
        outcome, stderr = "unable", "the output of the tests is no UTF-8"
    else:
        outcome = "failed" if process.returncode else "passed"
    return {
        "outcome": outcome,
        "returncode": process.returncode,
        "duration": duration,
        "stdout": stdout,
        "stderr": stderr,
    }


def events(report: str) -> list[Any]:
    """Events of the observer; a killed pytest may have left half a line."""
    found = []
    try:
        with open(report, encoding="utf-8", errors="surrogatepass") as file:
            for line in file:
                with contextlib.suppress(ValueError):
                    found.append(json.loads(line))
    except OSError:
        pass  # no pytest, or it never came so far
    return found


def answer(request: Message) -> Message:
    """The answer to one question."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(request["report"])
    try:
        with overwritten(request["files"]):
            reply = run(request)
    except Stale as error:
        return {"outcome": "stale", "path": str(error)}
    except OSError as error:  # a full disk, for instance; the sandbox may be left mutated
        return {"outcome": "unwritable", "errno": error.errno, "error": f"{error.strerror}: {error.filename!r}"}
    return {**reply, "report": events(request["report"])}


def main(_options: Message) -> None:
    """Answer the bridge until it closes the channel; the current directory is the sandbox."""
    channel = Channel.to_bridge()
    channel.send(READY)
    for request in channel.messages():
        channel.send({"id": request["id"], **answer(request)})
