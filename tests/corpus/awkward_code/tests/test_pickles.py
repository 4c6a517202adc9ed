from subject.pickles import Point, again, moved, twin


def test_again():
    assert again(Point(3)).x == 3


def test_function():
    assert again(moved) is moved
    assert moved.__qualname__ == "moved"


def test_twin():
    assert twin(Point(2)).x == 2
