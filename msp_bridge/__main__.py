"""The command `msp-bridge`, also as `python -m msp_bridge`: what a signal does is set before much is loaded."""

import os
import signal
import sys
from typing import NoReturn

INTERRUPTED = 130  # `cli.Exit`


def main() -> NoReturn:
    """The console script. A signal that comes while modules are loaded ends the process without a traceback.

    A server ends with 0, as it does later. Of another command only SIGINT is handled.
    """
    serves = sys.argv[1:2] == ["serve"]
    numbers = [signal.SIGINT, *([signal.SIGTERM] if serves else [])]
    before = {number: signal.getsignal(number) for number in numbers}
    for number in numbers:
        if before[number] is not signal.SIG_IGN:
            signal.signal(number, _leave if serves else _interrupted)
    from msp_bridge.cli import main as command_line

    if not serves:
        for number, handler in before.items():
            signal.signal(number, handler)
    command_line()


def _leave(*_: object) -> None:
    os._exit(0)  # nothing has been started; an exception in the middle of an import may be lost


def _interrupted(*_: object) -> None:
    os.write(2, b"msp-bridge: interrupted\n")
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    main()
