"""What the tests share."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in the background of a script; what tests start is to heed it
    signal.signal(signal.SIGINT, signal.default_int_handler)

TESTS = Path(__file__).parent
sys.path.insert(0, str(TESTS))  # the stranger's plugin is installed, as far as importlib.metadata can tell
