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


def daemon() -> None:
    """Leaves a double-forked daemon with a session of its own, deaf to SIGTERM, that holds our stdout; and stays itself."""
    reader, writer = os.pipe()
    os.set_inheritable(writer, True)
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            place = sys.argv[2] if len(sys.argv) > 2 else "-"
            os.execv(sys.executable, [sys.executable, __file__, "stubborn_and_tell", place, str(writer)])
        os._exit(0)
    os.close(writer)
    os.wait()
    os.read(reader, 1)  # until it is ready
    hang()


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


if __name__ == "__main__":
    globals()[sys.argv[1]]()
