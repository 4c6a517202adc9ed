from shop.cart import Item
from shop.receipt import receipt


def test_a_receipt_lists_each_item_and_the_total():
    assert receipt([Item("book", 12_05)], 16_95) == "book: 12.05 €\nTotal: 16.95 €"
