"""A little arithmetic, most of it tested."""


def clamp(value, low, high):
    if value < low:
        return low
    return min(value, high)


def countdown(n):
    while n > 0:
        n = n - 1
    return n


def untested(flag):
    return not flag


def excluded(n):
    return n + 1  # pragma: no mutate
