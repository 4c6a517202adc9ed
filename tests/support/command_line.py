"""The command line on a small project of the scripted adapter."""

import io
import json
import logging
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from msp_bridge.cli import run_command
from support import servers

TESTS = Path(__file__).parents[1]
WAIT_S = 60.0
SCRIPT: dict[str, Any] = {
    "mutations": [
        {"mutator": "plus", "find": "+", "replacement": "-", "status": "Killed", "details": {"duration": 1.5}},
        {"mutator": "digit", "find": "1", "replacement": "2", "status": "Survived"},
    ]
}
GATED = [SCRIPT["mutations"][0], SCRIPT["mutations"][1] | {"after": "never"}]  # the second one's result never comes


def make_project(root: Path) -> Path:
    """Four mutants in two files."""
    root.mkdir()
    (root / "a.py").write_text("x = y + 1\nz = 1\n")
    (root / "b.py").write_text("w = v + u\n")
    return root


def script(project: Path, **changes: Any) -> None:
    (project / "scripted.json").write_text(json.dumps(SCRIPT | changes))


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "msp_bridge", *arguments]


def environment(project: Path) -> dict[str, str]:
    return servers.environment(project) | {"COLUMNS": "200", "TERM": "dumb"}


def bridge(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command with the scripted adapter, in the project."""
    return in_process(project, project, *arguments, "--adapter", "scripted")


def run(project: Path, *arguments: str, env: dict[str, str] | None = None, **streams: Any) -> Any:
    """The command with the scripted adapter, in the project, as a process of its own; `env` is added to its environment."""
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | streams
    env, argv = environment(project) | (env or {}), command(*arguments, "--adapter", "scripted")
    return subprocess.run(argv, cwd=project, env=env, text=True, timeout=WAIT_S, **streams)


def interrupted(
    project: Path, number: signal.Signals, *arguments: str, shell: Sequence[str] = (), **variables: str
) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of the command that gets a signal when the adapter waits for the gate of `GATED`."""
    argv, env = [*shell, *command(*arguments, "--adapter", "scripted")], environment(project) | variables
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    running = subprocess.Popen(argv, cwd=project, env=env, text=True, **pipes)
    log = Path(json.loads((project / "scripted.json").read_text())["events"]) / "log"
    wait_until(lambda: log.exists() and "waiting for never" in log.read_text(), running)
    running.send_signal(number)
    out, err = running.communicate(timeout=WAIT_S)
    return running.returncode, out, err


def in_process(
    directory: Path, project: Path, *arguments: str, program: Path | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    """The command as the code of this process, which costs no start of an interpreter; signals and streams are as before."""
    signals = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    handlers, level = logging.root.handlers[:], logging.root.level
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", newline="") for _ in range(2))
    with pytest.MonkeyPatch.context() as process:
        for name, value in (environment(project) | variables).items():
            process.setenv(name, value)
        process.chdir(directory)
        process.setattr(sys, "stdout", out)
        process.setattr(sys, "stderr", err)
        process.setattr(sys, "argv", [str(program or sys.argv[0]), *arguments])
        try:
            code = run_command(arguments)
        finally:
            for handler in set(logging.root.handlers).difference(handlers):
                handler.close()
            logging.root.handlers[:], logging.root.level = handlers, level
            for number, handler in signals.items():
                signal.signal(number, handler)
    return subprocess.CompletedProcess(arguments, code, *(_written(stream) for stream in (out, err)))


def _written(stream: io.TextIOWrapper) -> str:
    stream.flush()
    stream.seek(0)
    return stream.read()


def wait_until(condition: Callable[[], bool], running: subprocess.Popen[Any]) -> None:
    """Until something is so, while the process runs."""
    end = time.monotonic() + WAIT_S
    while not condition():
        assert running.poll() is None, f"the command ended: {running.communicate()[1]}"
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.01)


def console_script(path: Path) -> Path:
    """As pip writes it."""
    path.parent.mkdir(parents=True)
    path.write_text(f"#!{sys.executable}\nfrom msp_bridge.cli import main\nmain()\n")
    path.chmod(0o755)
    return path
