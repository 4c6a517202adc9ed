from subject import _fast


def doubled(number):
    return number * 2


def applied(number):
    return _fast.apply(doubled, number) + 1


def added(one, other):
    return _fast.add(one, other) - 0
