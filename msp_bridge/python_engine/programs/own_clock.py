"""The clock, for what we do in a process that runs tests: one of these may have stopped the clock that all others read.

freezegun replaces the functions of `time`, there and in every module that has them, but not what a class has. That
lasts from one test to the next where a class, a fixture of a wider scope or a conftest.py does it.
"""

from __future__ import annotations

import time


class Clock:
    """Functions of `time` as they were when this was imported."""

    monotonic = staticmethod(time.monotonic)
    perf_counter = staticmethod(time.perf_counter)
    time = staticmethod(time.time)
