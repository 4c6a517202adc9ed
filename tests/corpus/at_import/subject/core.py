import functools


def scaled(factor):
    def decorate(function):
        @functools.wraps(function)
        def wrapper(*args):
            return function(*args) * factor

        return wrapper

    return decorate


def table(size):
    return {number: number * number for number in range(size)}


SQUARES = table(4)


@scaled(3)
def add(one, other=len(SQUARES)):
    return one + other


def square(number):
    return SQUARES[number]
