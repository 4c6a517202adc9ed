import faulthandler

faulthandler.dump_traceback_later(3600)


def clamp(number, low, high):
    if number < low:
        return low
    if number > high:
        return high
    return number


def middle(low, high):
    return (low + high) // 2
