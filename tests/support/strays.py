"""Programs for the tests: tools that leave processes behind in every way, and how to find those."""

import asyncio
import contextlib
import os
import shutil
import subprocess
import sys
import uuid
from collections.abc import Container

import psutil

PRELUDE = """
import os, signal, subprocess, sys, time
mark = sys.argv[1]

def sleeper(ignore=False, say="up"):
    code = "import signal, sys, time\\n"
    code += "signal.signal(signal.SIGTERM, signal.SIG_IGN)\\n" if ignore else ""
    code += f"print({say!r}, end='\\\\n' if {say!r} else '', flush=True)\\ntime.sleep(600)"
    return [sys.executable, "-c", code, mark]

def daemon(environment=None):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execve(sys.executable, sleeper(ignore=True, say=''), os.environ if environment is None else environment)
        os._exit(0)
    os.wait()
"""

TOOLS = {
    "child": "child = subprocess.Popen(sleeper(), stdout=subprocess.PIPE); child.stdout.readline()\n",
    "stubborn child": "child = subprocess.Popen(sleeper(ignore=True), stdout=subprocess.PIPE); child.stdout.readline()\n",
    "daemon": "daemon()\n",
    "daemon without environment": "daemon({})\n",
}


def tool(kind: str, mark: str, then: str) -> list[str]:
    """The command line of a tool that leaves `kind` behind, says `ready`, and goes on with `then`."""
    return [sys.executable, "-c", PRELUDE + TOOLS[kind] + "print('ready', flush=True)\n" + then, mark]


def new_mark() -> str:
    """A word by which all processes of one test are known."""
    return f"mark-{uuid.uuid4().hex}"


def with_argument(argument: str) -> dict[int, list[str]]:
    """The command lines of the living processes that have `argument` in theirs, in whatever PID namespace; by pid.

    It is looked for many times a second: psutil takes ten times as long where there is a /proc.
    """
    found = {}
    for pid in psutil.pids():
        with contextlib.suppress(psutil.Error, OSError):  # gone meanwhile; a zombie has lost its command line
            command = _command(pid)
            if argument in command:
                found[pid] = command
    return found


def _command(pid: int) -> list[str]:
    if sys.platform != "linux":
        return psutil.Process(pid).cmdline()
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        return os.fsdecode(file.read()).rstrip("\0").split("\0")


def marked(mark: str) -> list[str]:
    """The pids and command lines of the living processes that have `mark` in theirs."""
    return [f"{pid} {command[:4]}" for pid, command in with_argument(mark).items()]


def below(pid: int) -> dict[int, list[str]]:
    """The command lines of the living descendants of a process. One that has ended, or is ending, has none."""
    found = {}
    for process in psutil.Process(pid).children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):  # gone meanwhile, or a zombie
            if command := process.cmdline():
                found[process.pid] = command
    return found


async def busy(word: str, spared: Container[int] = ()) -> psutil.Process:
    """The process below ours with `word` in its command line, and none of `spared`, that has computed for a second."""
    async with asyncio.timeout(60):
        while True:
            for process in psutil.Process().children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    computes = process.pid not in spared and process.cpu_times().user > 1
                    if computes and word in " ".join(process.cmdline()):
                        return process
            await asyncio.sleep(0.05)


def may_make_pid_namespaces() -> bool:
    """Whether the tools of a bridge have a PID namespace each, on this machine."""
    argv = ["unshare", "--pid", "--fork", "--mount-proc", "true"]
    tried = shutil.which("unshare") and os.geteuid() == 0 and subprocess.run(argv, capture_output=True, check=False)
    return bool(tried) and tried.returncode == 0


async def gone(mark: str) -> bool:
    """Whether they all go, if only after a while: for what no call of ours waits for."""
    for _ in range(1000):
        if not marked(mark):
            return True
        await asyncio.sleep(0.02)
    return False
