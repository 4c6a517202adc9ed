LIMIT = 3
HANDLERS = {}


def route(name, *functions):
    for function in functions:
        HANDLERS[name + function.__name__] = function


def shown(items):
    return items[:LIMIT]


def count(items):
    return len(items) + 1


def unused(items):
    return items + items


route("/", shown, count)
