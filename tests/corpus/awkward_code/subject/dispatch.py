# functools.singledispatch: functions that are found by type alone.
from functools import singledispatch


@singledispatch
def shown(value):
    return "?"


@shown.register
def _(value: int):
    return str(value + 1)


@shown.register
def _(value: list):
    return ",".join(shown(each) for each in value)


def wrapped(value):
    return "<" + shown(value) + ">"
