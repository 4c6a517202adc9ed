import pytest
from truth.shared import expensive


@pytest.fixture(scope="session")
def values():
    return expensive(1)
