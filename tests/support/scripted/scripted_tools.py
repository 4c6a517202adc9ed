"""The programs that the tests start through ProcessTree: `python scripted_tools.py NAME [DIRECTORY]`.

Each writes the file DIRECTORY/NAME-PID when it is ready, so that a test knows when to go on and whom to look for.
"""

import os
import signal
import sys
import time
from pathlib import Path

LONG = 3600.0  # s: no test waits so long, so whoever still lives was not ended


def ready(name: str) -> None:
    """Gives the test our pid."""
    if len(sys.argv) > 2 and sys.argv[2] != "-":
        (Path(sys.argv[2]) / f"{name}-{os.getpid()}").touch()


def hang() -> None:
    """Ends when it is asked to."""
    ready("hang")
    time.sleep(LONG)


def stubborn() -> None:
    """Ends only when it is killed."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    ready("stubborn")
    time.sleep(LONG)


def daemon(environment: dict[str, str] | None = None) -> None:
    """Leaves a double-forked daemon with a session of its own, deaf to SIGTERM, that holds our stdout; and stays itself."""
    leave_daemon(environment)
    hang()


def daemon_without_environment() -> None:
    """As `daemon`, and the daemon has lost its environment too."""
    daemon({})


def leaver() -> None:
    """Leaves a daemon, and ends."""
    leave_daemon(None)
    print("left", flush=True)


def leaver_without_environment() -> None:
    """Leaves a daemon without an environment, and ends."""
    leave_daemon({})
    print("left", flush=True)


def leave_daemon(environment: dict[str, str] | None) -> None:
    """Returns when the daemon is ready."""
    reader, writer = os.pipe()
    os.set_inheritable(writer, True)
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            command = [
                sys.executable,
                __file__,
                "stubborn_and_tell",
                sys.argv[2] if len(sys.argv) > 2 else "-",
                str(writer),
            ]
            os.execve(sys.executable, command, os.environ if environment is None else environment)
        os._exit(0)
    os.close(writer)
    os.wait()
    os.read(reader, 1)


def stubborn_and_tell() -> None:
    """As `stubborn`; closes the descriptor that it was given, and says nothing."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    ready("daemon")
    os.close(int(sys.argv[3]))
    time.sleep(LONG)


def flood() -> None:
    """Writes lines of 10 kB for ever."""
    ready("flood")
    line = b"x" * 9_999 + b"\n"
    while True:
        os.write(1, line)


def echo() -> None:
    """Repeats its input until that ends."""
    while data := os.read(0, 65536):
        os.write(1, data)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
