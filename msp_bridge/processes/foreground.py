"""A program of the user's choice, such as an editor, that has the terminal of this process until it ends."""

import asyncio
import signal
from collections.abc import Sequence
from pathlib import Path

from msp_bridge.errors import ConfigurationError


async def run_in_foreground(command: Sequence[str], directory: Path) -> int:
    """Run `command` in `directory` with this process's terminal; returns its exit code. Raises ConfigurationError.

    Meanwhile Ctrl-C is for that program alone, though a terminal sends it to both.
    """
    before = signal.signal(signal.SIGINT, lambda *_: None)  # not SIG_IGN, which the program would inherit
    try:
        process = await asyncio.create_subprocess_exec(*command, cwd=directory)
        return await process.wait()
    except OSError as error:
        raise ConfigurationError(f"can't start {command[0]}: {error.strerror}") from None
    finally:
        signal.signal(signal.SIGINT, before)
