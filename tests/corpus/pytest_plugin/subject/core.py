import pytest


def pytest_configure(config):
    config.subject_level = level(3)


def pytest_generate_tests(metafunc):
    if "number" in metafunc.fixturenames:
        metafunc.parametrize("number", numbers())


def level(number):
    return number + 1


def numbers():
    return [1, 2]


@pytest.fixture
def doubled(number):
    return number * 2
