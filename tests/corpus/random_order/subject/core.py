ITEMS = []


def push(item):
    ITEMS.append(item * 2)
    return len(ITEMS)


def pop():
    return ITEMS.pop() - 1
