# Functions that look at their callers.
import inspect
import sys
import traceback


def caller():
    return inspect.stack()[1].function


def depth():
    return len(traceback.extract_stack()) - len(inspect.stack(0)) + 1


def named():
    return caller() + "!"


def place():
    return sys._getframe(1).f_code.co_name


def failing(number):
    return 10 / (number - 1)
