from subject.closures import ADD_TWO, RESET, STEP, adder, compose, counter


def test_counter():
    step, reset = counter(0)
    assert (step(), step(3)) == (1, 4)
    reset()
    assert step() == 1


def test_at_import():
    RESET()
    assert STEP() == 6


def test_adder():
    assert ADD_TWO(3) == 5
    assert adder(1)(1) == 2


def test_compose():
    assert compose(ADD_TWO, str)(1) == "3"
