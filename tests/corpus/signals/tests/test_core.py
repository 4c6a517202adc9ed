import os
import signal

from subject.core import interrupted, seen, signalled


def test_interrupted():
    assert interrupted(0.02) == 1


def test_signalled():
    assert signalled()


def test_seen():
    try:
        os.kill(os.getpid(), signal.SIGINT)
    except KeyboardInterrupt:  # another handler is in its place
        return
    assert seen()
