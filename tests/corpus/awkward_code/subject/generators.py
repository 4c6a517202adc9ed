# Generators that are suspended from one test to the next.
def countdown(start):
    while start > 0:
        yield start
        start -= 1


def accumulate():
    total = 0
    while True:
        number = yield total
        total += number


RUNNING = accumulate()
next(RUNNING)
SHARED = countdown(4)
