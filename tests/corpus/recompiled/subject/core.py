def double(number):
    return number + number


def triple(number):
    return number * 3


def with_other_code(function):
    """As an instrumenting decorator leaves it: the same name and place, other code."""
    code = function.__code__
    return code.replace(co_consts=(*code.co_consts, "instrumented"))


triple.__code__ = with_other_code(triple)
