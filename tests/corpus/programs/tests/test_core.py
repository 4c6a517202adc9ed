import subprocess
import sys

from subject.core import largest


def run(*arguments):
    return subprocess.run([sys.executable, "-m", "subject.core", *arguments], capture_output=True, text=True)


def test_main():
    done = run("1", "5")
    assert (done.returncode, done.stdout) == (0, "6\n")


def test_nothing():
    assert run().returncode == 2


def test_largest():
    assert largest([1]) > 1
