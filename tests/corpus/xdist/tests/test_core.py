import pytest
from subject.core import sign, smaller


def test_smaller():
    assert smaller(1, 2) == 1


@pytest.mark.parametrize(("number", "wanted"), [(-3, -1), (0, 0), (4, 1)])
def test_sign(number, wanted):
    assert sign(number) == wanted
