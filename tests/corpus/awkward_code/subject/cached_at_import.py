# functools.lru_cache with answers from an import.
from functools import cache, lru_cache


@lru_cache(maxsize=None)
def triangle(number):
    return number * (number + 1) // 2


FIRST = triangle(4)


@cache
def cube(number):
    return number * number * number


def difference(one, other):
    return triangle(one) - triangle(other)
