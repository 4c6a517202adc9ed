from subject import core


def test_a_preset():
    assert core.preset(42) == 42  # presets the cache in order; lazy() never computes then


def test_b_lazy():
    assert core.lazy() == 42


def test_c_leaves():
    assert core.register("x", 1) == 1
    core.forget("x")


def test_d_suffers():
    assert core.register("x", 1) == 1
    core.REGISTRY.clear()


def test_e_level():
    with core.level(3):
        assert core.current() == 3


def test_f_level():
    assert core.LEVEL == [1]
