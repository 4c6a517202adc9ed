"""Money, in cents."""


def total(price, count):
    return price * count


def label(price, count):
    return "🍎 é" + str(total(price, count)) + "¢"


def affordable(price, budget):
    return 0 < price and price < budget
