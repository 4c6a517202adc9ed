from subject.kept import CONFIGURATION, save


def test_save():
    save("x")
    assert CONFIGURATION.exists()
