from subject.class_cells import Base, Child


def test_base():
    assert Base(1).value() == 4


def test_child():
    assert Child(3).value() == 7
    assert Child(4).half == 2


def test_name():
    assert Child(1).name() == "Child"


def test_made():
    assert Child.made(1).number == 3
    assert Child.double(2) == 4
