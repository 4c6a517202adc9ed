class ParseError(Exception):
    pass


class SectionWrapper:
    pass


class IniConfig(dict):
    pass


def limits():
    return {"low": 1, "high": 10}


def within(number):
    return LIMITS["low"] <= number <= LIMITS["high"]


LIMITS = limits()
