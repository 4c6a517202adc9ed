from subject.core import interrupted, told


def test_interrupted():
    assert interrupted(0.02) == 1


def test_told():
    assert told()
