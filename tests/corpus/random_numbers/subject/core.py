import random

LIMIT = 3 + 1


def draw():
    return random.randint(1, 1000)


def is_special(number):
    return number > LIMIT
