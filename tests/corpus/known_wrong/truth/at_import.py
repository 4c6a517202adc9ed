"""Killed only by a process that imports with the mutant; the last function's mutants survive there, and only there."""


def squares(n):
    return {i: i * i for i in range(n)}


SQUARES = squares(4)


def secret():
    return 40 + 2


SECRET = secret()
