from subject.mangling import Account


def test_withdraw():
    assert Account(100).withdraw(50) == 43


def test_equal():
    assert Account(1) == Account(1)
    assert not Account(1) == Account(2)
