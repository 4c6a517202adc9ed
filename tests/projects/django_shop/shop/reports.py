from decimal import Decimal


def revenue(orders):
    total = Decimal(0)
    for order in orders:
        if order.paid:
            total += order.total
    return total


def best(orders, number=1):
    counts = {}
    for order in orders:
        counts[order.product.name] = counts.get(order.product.name, 0) + order.count
    return sorted(counts, key=lambda name: (-counts[name], name))[:number]
