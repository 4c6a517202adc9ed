from decimal import Decimal

from django.test import TestCase

from shop.models import Event, Order, Product


class ModelTest(TestCase):
    @classmethod
    def setUpTestData(cls):
        cls.tea = Product.objects.create(name="tea", price=Decimal("2.50"), stock=20)

    def test_price(self):
        self.assertEqual(self.tea.price_of(2), Decimal("5.00"))

    def test_discount(self):
        self.assertEqual(self.tea.price_of(10), Decimal("22.50"))

    def test_take(self):
        self.tea.take(20)
        self.assertEqual(Product.objects.get(name="tea").stock, 0)

    def test_too_many(self):
        with self.assertRaisesMessage(ValueError, "20 of tea are left"):
            self.tea.take(21)

    def test_event(self):
        order = Order.objects.create(product=self.tea, count=3)
        order.save()
        self.assertEqual([event.text for event in Event.objects.all()], ["3 x tea"])
