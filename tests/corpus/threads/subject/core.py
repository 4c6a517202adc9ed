from concurrent.futures import ThreadPoolExecutor

POOL = ThreadPoolExecutor(2)
READY = POOL.submit(len, "ready").result()


def total(numbers):
    return sum(POOL.map(doubled, numbers))


def doubled(number):
    return number * 2


def capped(number):
    if number > 10:
        return 10
    return number
