from subject.cached_at_import import FIRST, cube, difference, triangle


def test_first():
    assert FIRST == 10


def test_triangle():
    assert triangle(4) == 10


def test_cube():
    assert cube(2) == 8
    assert cube(1) == 1


def test_difference():
    assert difference(4, 3) == 4
