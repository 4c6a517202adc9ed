#!/usr/bin/env -S python3 -I
"""Starts the bridge that lies beside this file, with whichever Python of the container can run it.

As PID 1 it is also what a container's first process must be: it passes signals on, which the kernel would otherwise
drop until somebody handles them, and reaps orphans. Python 3.6 can read this file, so that an old one gets the message.
"""

import os
import shutil
import signal
import sys
from importlib.machinery import EXTENSION_SUFFIXES

HOME = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
LIB = os.path.join(HOME, "lib")
VERSIONS = [(3, 14), (3, 13), (3, 12), (3, 11)]  # those that orjson is here for: see the Dockerfile
SIGNALS = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]


def main() -> None:
    """Ends with the bridge's exit code."""
    if sys.version_info[:2] not in VERSIONS:
        _run_with_another_python()
    if not any(os.path.exists(os.path.join(LIB, "orjson", "orjson" + suffix)) for suffix in EXTENSION_SUFFIXES):
        sys.exit(
            f"msp-bridge: this copy was made for another system or processor than that of {sys.executable}; "
            "install it there: python3 -m pip install msp-bridge"
        )
    if os.getpid() == 1:
        _be_the_first_process()
    sys.path.insert(0, LIB)
    from msp_bridge.__main__ import main as bridge

    bridge()


def _run_with_another_python() -> None:
    for major, minor in VERSIONS:
        python = shutil.which(f"python{major}.{minor}")
        if python:
            os.execv(python, [python, "-I", os.path.abspath(__file__), *sys.argv[1:]])
    (newest, *_, oldest), (major, minor) = VERSIONS, sys.version_info[:2]
    sys.exit(
        f"msp-bridge: needs Python {oldest[0]}.{oldest[1]} to {newest[0]}.{newest[1]}, and {sys.executable} is "
        f"{major}.{minor}: install another beside it, or the bridge into it: python3 -m pip install msp-bridge"
    )


def _be_the_first_process() -> None:
    """Returns in a child, which is to be the bridge."""
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    bridge = os.fork()
    if not bridge:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        return
    for number in SIGNALS:
        signal.signal(number, lambda number, _: os.kill(bridge, number))
    if sys.stdin is not None and sys.stdin.isatty():
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal's Ctrl-C reaches the bridge by itself
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    while True:
        pid, status = os.wait()
        if pid == bridge:
            os._exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))


main()
