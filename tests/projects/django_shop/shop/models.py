from decimal import Decimal

from django.db import models


class Product(models.Model):
    name = models.CharField(max_length=40, unique=True)
    price = models.DecimalField(max_digits=8, decimal_places=2)
    stock = models.PositiveIntegerField(default=0)

    def price_of(self, count):
        price = self.price * count
        if count >= 10:
            price = price * Decimal("0.9")
        return price

    def take(self, count):
        if count > self.stock:
            raise ValueError(f"{self.stock} of {self.name} are left")
        self.stock -= count
        self.save()


class Order(models.Model):
    product = models.ForeignKey(Product, on_delete=models.CASCADE, related_name="orders")
    count = models.PositiveIntegerField()
    paid = models.BooleanField(default=False)

    @property
    def total(self):
        return self.product.price_of(self.count)


class Event(models.Model):
    text = models.CharField(max_length=80)
