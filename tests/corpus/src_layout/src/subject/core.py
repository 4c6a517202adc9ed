RATE = 3


def taxed(price):
    return price + price * RATE // 100


def rounded(price):
    if price % 5 == 0:
        return price
    return price + 5 - price % 5
