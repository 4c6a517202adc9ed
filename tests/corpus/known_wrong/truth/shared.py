"""Reached once, by a fixture of a wider scope, and looked at by a later test."""


def expensive(n):
    return [n, n + 1]
