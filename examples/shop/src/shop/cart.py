"""The cart of a small shop. Prices are in cents."""

from dataclasses import dataclass

FREE_SHIPPING_FROM = 50_00
SHIPPING = 4_90


@dataclass(frozen=True)
class Item:
    name: str
    price: int
    quantity: int = 1


def subtotal(items):
    return sum(item.price * item.quantity for item in items)


def discount(items, code=None):
    amount = subtotal(items)
    if code == "WELCOME":
        return amount * 10 // 100
    if code == "BULK" and sum(item.quantity for item in items) >= 10:
        return amount * 20 // 100
    return 0


def shipping(amount):
    if amount >= FREE_SHIPPING_FROM:
        return 0
    return SHIPPING


def total(items, code=None):
    amount = subtotal(items) - discount(items, code)
    return amount + shipping(amount)
