"""What is printed on the receipt."""


def money(cents):
    return f"{cents // 100}.{cents % 100:02d} €"


def line(item):
    if item.quantity == 1:
        return f"{item.name}: {money(item.price)}"
    return f"{item.quantity} × {item.name}: {money(item.price * item.quantity)}"


def receipt(items, total):
    lines = [line(item) for item in items]
    lines.append(f"Total: {money(total)}")
    return "\n".join(lines)
