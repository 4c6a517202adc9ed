# Functions and classes that are pickled by name, and copied.
import copy
import pickle


class Point:
    def __init__(self, x):
        self.x = x

    def __reduce__(self):
        return moved, (self.x - 1,)


def moved(x):
    return Point(x + 1)


def again(value):
    return pickle.loads(pickle.dumps(value))


def twin(value):
    return copy.deepcopy(value)
