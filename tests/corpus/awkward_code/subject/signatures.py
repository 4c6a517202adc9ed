# Decorators that look at signatures, defaults and annotations at import.
import functools
import inspect

REGISTERED = {}


def checked(function):
    signature = inspect.signature(function)

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        for name, value in bound.arguments.items():
            wanted = signature.parameters[name].annotation
            if not isinstance(value, wanted):
                raise TypeError(name)
        return function(*bound.args, **bound.kwargs)

    REGISTERED[function.__name__] = signature
    return wrapper


@checked
def power(base: int, exponent: int = 2):
    return base**exponent


def scaled(number, factor=10):
    return number * factor
