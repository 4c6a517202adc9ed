def smaller(one, other):
    return one if one < other else other


def sign(number):
    if number < 0:
        return -1
    return 1 if number > 0 else 0
