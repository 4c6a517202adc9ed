"""A mutant makes a function leave something that a later test, which does not run it, finds."""

REGISTRY = {}
LEVEL = [1]
_cache = {}


def register(name, value):
    if name in REGISTRY:
        raise KeyError(name)
    REGISTRY[name] = value
    return len(REGISTRY)


def forget(name):
    REGISTRY.pop(name, None)


class level:
    def __init__(self, n):
        self.n = n

    def __enter__(self):
        LEVEL.append(self.n)

    def __exit__(self, *a):
        LEVEL.pop()
        return False


def current():
    return LEVEL[-1]


def lazy():
    if "v" not in _cache:
        _cache["v"] = compute()
    return _cache["v"]


def compute():
    return 6 * 7


def preset(v):
    _cache["v"] = v
    return v
