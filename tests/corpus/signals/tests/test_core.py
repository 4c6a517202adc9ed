from subject.core import interrupted, signalled


def test_interrupted():
    assert interrupted(0.02) == 1


def test_signalled():
    assert signalled()
