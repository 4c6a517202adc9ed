def add(a, b):
    return a + b


def absolute(x):
    return x if x >= 0 else -x


def untested(x):
    return x * 3


def table():
    return {i: i * i for i in range(5)}


TABLE = table()


def countdown(n):
    while n > 0:
        n -= 1
    return n


def ignored(a):
    return a + 1  # pragma: no mutate
