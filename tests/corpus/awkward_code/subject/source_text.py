# Tests that read the source of the functions that they test.
def add(one, other):
    return one + other


def both(one, other):
    if one and other:
        return 1
    return 0
