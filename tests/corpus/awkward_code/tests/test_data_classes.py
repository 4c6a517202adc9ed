from subject.data_classes import Item


def test_total():
    assert Item(2).total == 4


def test_order():
    assert Item(1) < Item(2)
    assert Item(1).cheaper(Item(2))
    assert not Item(2).cheaper(Item(2))


def test_tags():
    assert Item(1).tags == ["new"]
    assert Item(1, "x") == Item(1, "y")
