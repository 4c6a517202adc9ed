"""Runs commands one after another, each in a child's world of its own: a world costs a fork, not the start of Python.

Questions and answers are lines of JSON, as in `toolkit/json_lines.py`. A question names a `command`, changes of the
environment (`env`), a directory (`cwd`), `seconds` that it may take, null for no limit, and a regular expression for
`wanted` lines, or null. The answer has its exit `code` (as a shell gives it; null if it was ended at the limit), what
it `printed` on both outputs, only `wanted` lines of the middle where that is long, and the `seconds` that it took.

All that a command has started ends with it: by its process namespace or, where the part "pid" is not permitted, because
orphans become children of this process.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import time
from collections.abc import Callable
from typing import IO, Any

from . import descendants, kernel
from .namespaces import HostWorld
from .printed import Printed

Become = Callable[[list[str], HostWorld], object]

MARK = "msp-bridge: json lines"
BLOCK = 1 << 16


def serve(world: HostWorld, become: Become) -> None:
    """Answer the questions on stdin until it ends. `become` runs a command in the child, and does not return."""
    with os.fdopen(os.dup(0), "rb") as questions, os.fdopen(os.dup(1), "wb") as answers:
        descendants.adopt_orphans()
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.dup2(2, 1)
        os.set_inheritable(null, False)
        answers.write(f"{MARK}\n".encode())
        _answer(answers, {"id": 0})
        for line in questions:
            question = json.loads(line)
            _answer(answers, {"id": question["id"], **_run(world, question, become)})


def _answer(answers: IO[bytes], answer: dict[str, Any]) -> None:
    answers.write(json.dumps(answer).encode() + b"\n")
    answers.flush()


def _run(world: HostWorld, question: dict[str, Any], become: Become) -> dict[str, Any]:
    began = time.monotonic()
    output, theirs = os.pipe()
    pid, namespace = world.fork(world.parts)
    if pid == 0:
        os.dup2(theirs, 1)
        os.dup2(theirs, 2)
        os.chdir(question["cwd"])
        os.environ.update(question["env"], PWD=question["cwd"])
        become(question["command"], world)
    os.close(theirs)
    try:
        printed = Printed(question["wanted"])
        in_time = _wait(pid, output, printed, question["seconds"])
        if not in_time:
            os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        descendants.end_strays(world.processes)
        world.end_child(pid, namespace)
        _drain(output, printed)
    finally:
        os.close(output)
    code = os.waitstatus_to_exitcode(status)
    return {
        "code": (code if code >= 0 else 128 - code) if in_time else None,
        "printed": printed.text,
        "seconds": time.monotonic() - began,
    }


def _wait(pid: int, output: int, printed: Printed, seconds: float | None) -> bool:
    """Read what the process prints until it ends; False if it does not end within `seconds`."""
    deadline = None if seconds is None else time.monotonic() + seconds
    ended = kernel.open_process(pid)
    waited = [ended, output]
    try:
        while True:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            ready, _, _ = select.select(waited, [], [], left)
            if output in ready:
                if not _read(output, printed):
                    waited = [ended]
            elif ended in ready:
                return True
            if not ready:
                return False
    finally:
        os.close(ended)


def _drain(output: int, printed: Printed) -> None:
    """Read what is left in the pipe; nobody writes to it any more but what has escaped."""
    os.set_blocking(output, False)
    with contextlib.suppress(BlockingIOError):
        while _read(output, printed):
            pass


def _read(output: int, printed: Printed) -> bool:
    data = os.read(output, BLOCK)
    printed.add(data)
    return bool(data)
