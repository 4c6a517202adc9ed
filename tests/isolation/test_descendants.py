"""What a process knows of itself and of what is below it."""

import os
import subprocess
import sys
import time

import pytest

from msp_bridge.isolation import descendants

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")
SPIN = "import time; end = time.monotonic() + 60\nwhile time.monotonic() < end: pass"


def test_waiting_for_a_cpu_that_another_process_uses_is_counted() -> None:
    cpus = os.sched_getaffinity(0)
    other = subprocess.Popen([sys.executable, "-c", SPIN])
    try:
        for pid in (0, other.pid):
            os.sched_setaffinity(pid, {min(cpus)})
        before, used = descendants.waited_seconds(), time.thread_time()
        while time.thread_time() < used + 0.2:
            pass
        assert descendants.waited_seconds() > before + 0.05
    finally:
        os.sched_setaffinity(0, cpus)
        other.kill()
        other.wait()


def test_sleeping_is_not_waiting_for_a_cpu() -> None:
    before, began = descendants.waited_seconds(), time.monotonic()
    for _ in range(10):
        time.sleep(0.02)
    assert descendants.waited_seconds() - before < time.monotonic() - began - 0.15
