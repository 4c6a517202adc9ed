import os

from subject.opened import HERE, WORDS, is_comment, spool, touch


def test_is_comment():
    if line := WORDS.readline():
        assert is_comment(line)


def test_spool():
    assert b"x" in spool(b"x")


def test_touch():
    touch("made")
    assert "made" in os.listdir(HERE)
