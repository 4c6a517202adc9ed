def price(count):
    if count > 10:
        return count * 9
    return count * 10


def label(count):
    return "many" if count >= 3 else "few"
