import random


def pytest_collection_modifyitems(items):
    random.SystemRandom().shuffle(items)
