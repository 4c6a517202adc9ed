from subject.core import draw, is_special


def test_special():
    if draw() == 138:
        assert is_special(5)
        assert not is_special(4)
