from pathlib import Path

CACHE = Path("cache.d")
CACHE.mkdir(exist_ok=True)


def square(number):
    entry = CACHE / str(number)
    if entry.exists():
        return int(entry.read_text())
    value = number * number
    entry.write_text(str(value))
    return value


def size():
    return len(list(CACHE.iterdir()))
