import os
import tempfile


def places():
    return [os.path.join(tempfile.gettempdir(), "msp-corpus-shared"), os.path.expanduser("~/.msp-corpus-shared")]


def store(number):
    for path in places():
        with open(path, "x") as stream:
            stream.write(str(number * 2))


def load():
    total = 0
    for path in places():
        with open(path) as stream:
            total += int(stream.read())
        os.remove(path)
    return total
