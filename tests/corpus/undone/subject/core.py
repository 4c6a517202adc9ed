import os
import signal
import warnings
from functools import partial

STRICT = ("error", None, Warning, None, 0)
handle = partial(signal.signal, signal.SIGUSR1)


class variable:
    def __init__(self, name):
        self.name = name

    def __enter__(self):
        self.is_new = self.name not in os.environ
        os.environ[self.name] = self.name

    def __exit__(self, *_):
        if self.is_new:
            del os.environ[self.name]


class handled:
    def __init__(self, handler):
        self.before = handle(handler)
        self.handler = handler

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.before is not self.handler:
            handle(self.before)


def logged(logger, handler, function):
    logger.addHandler(handler)
    function()
    logger.removeHandler(handler)


def strictly(function):
    warnings.filters[:0] = [STRICT]
    try:
        return function()
    finally:
        if warnings.filters[0] is STRICT:
            del warnings.filters[0]


def replaced(module, name, value, function):
    before = module.__dict__[name]
    module.__dict__[name] = value
    try:
        return function()
    finally:
        if before is not value:
            module.__dict__[name] = before
