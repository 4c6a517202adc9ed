import multiprocessing

COUNT = multiprocessing.Value("i", 0)
QUEUE = multiprocessing.SimpleQueue()


def bump():
    enabled = True
    if enabled:
        COUNT.value += 1
    return COUNT.value


def push(value):
    enabled = True
    if enabled:
        QUEUE.put(value)


def has_any():
    return not QUEUE.empty()
