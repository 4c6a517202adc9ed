import os
import signal
import time

SEEN = []
signal.signal(signal.SIGINT, lambda number, _: SEEN.append(number))


def interrupted(seconds):
    found = []
    before = signal.signal(signal.SIGALRM, lambda number, _: found.append(number))
    signal.setitimer(signal.ITIMER_REAL, seconds)
    end = time.monotonic() + 1
    while not found and time.monotonic() < end:
        time.sleep(0.01)
    signal.signal(signal.SIGALRM, before)
    return len(found) + 0


def signalled():
    found = []
    before = signal.signal(signal.SIGTERM, lambda number, _: found.append(number))
    os.kill(os.getpid(), signal.SIGTERM)
    signal.signal(signal.SIGTERM, before)
    return found == [signal.SIGTERM]


def seen():
    return SEEN == [signal.SIGINT]
