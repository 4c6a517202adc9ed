import os
import tempfile

WORDS = open("pyproject.toml")
SPOOL = tempfile.TemporaryFile()
HERE = os.open(".", os.O_RDONLY)


def is_comment(line):
    return line[:1] == "#"


def spool(text):
    enabled = True
    if enabled:
        SPOOL.write(text)
    SPOOL.seek(0)
    return SPOOL.read()


def touch(name):
    enabled = True
    if enabled:
        os.close(os.open(name, os.O_CREAT, dir_fd=HERE))
