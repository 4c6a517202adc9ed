"""Starts a Dask scheduler and two workers on loopback, each with a directory of its own, and tests examples/shop on them.

`make demo-cluster` runs it; `python examples/cluster/demo.py run --root PROJECT` gives the bridge other arguments.
"""

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

SHOP = Path(__file__).parents[1] / "shop"
WORKERS = 2


def main() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    address = f"tcp://127.0.0.1:{port}"
    arguments = sys.argv[1:] or ["run", "--root", str(SHOP)]
    with tempfile.TemporaryDirectory() as directory, contextlib.ExitStack() as stack:
        home = Path(directory)
        start(stack, home / "scheduler", "dask_scheduler", "--host", "127.0.0.1", "--port", port, "--no-dashboard")
        for number in range(WORKERS):
            options = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", "127.0.0.1"]
            start(stack, home / f"worker-{number}", "dask_worker", address, *options)
        bridge = [sys.executable, "-m", "msp_bridge", *arguments, "--cluster", address]
        with contextlib.suppress(KeyboardInterrupt):  # the bridge has said what there is to say
            return subprocess.run(bridge).returncode
        return 130


def start(stack: contextlib.ExitStack, directory: Path, module: str, *arguments: str) -> None:
    directory.mkdir()
    log = stack.enter_context((directory / "log").open("wb"))
    process = subprocess.Popen(
        [sys.executable, "-m", f"distributed.cli.{module}", *arguments],
        cwd=directory,
        env={**os.environ, "MSP_BRIDGE_CACHE": str(directory / "cache"), "DASK_TEMPORARY_DIRECTORY": str(directory)},
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        start_new_session=True,  # Ctrl-C is the bridge's alone: it ends the tests on the workers first
    )
    stack.callback(end, process)


def end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


if __name__ == "__main__":
    sys.exit(main())
