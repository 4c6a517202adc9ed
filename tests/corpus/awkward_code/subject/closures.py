# Closures, nonlocal, functions that live in others' cells.
def counter(start):
    count = start

    def step(by=1):
        nonlocal count
        count += by
        return count

    def reset():
        nonlocal count
        count = start

    return step, reset


STEP, RESET = counter(5)


def adder(one):
    return lambda other: one + other


ADD_TWO = adder(2)


def compose(*functions):
    def composed(value):
        for function in functions:
            value = function(value)
        return value

    return composed
