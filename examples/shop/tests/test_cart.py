from shop.cart import SHIPPING, Item, discount, shipping, subtotal, total

BOOK = Item("book", 12_00)
MUG = Item("mug", 8_50, quantity=2)


def test_subtotal_counts_quantities():
    assert subtotal([BOOK, MUG]) == 29_00


def test_newcomers_get_ten_percent():
    assert discount([BOOK], "WELCOME") == 1_20


def test_bulk_orders_get_twenty_percent():
    assert discount([Item("pen", 1_00, quantity=20)], "BULK") == 4_00


def test_no_code_no_discount():
    assert discount([BOOK]) == 0


def test_small_orders_pay_for_shipping():
    assert shipping(10_00) == SHIPPING


def test_large_orders_are_shipped_for_free():
    assert shipping(80_00) == 0  # the border itself, 50 euros, is never tried: a mutant survives there


def test_total():
    assert total([BOOK, MUG], "WELCOME") == 29_00 - 2_90 + SHIPPING
