from subject.core import rounded, taxed


def test_taxed():
    assert taxed(200) == 206


def test_rounded():
    assert rounded(10) == 10
    assert rounded(12) == 15
