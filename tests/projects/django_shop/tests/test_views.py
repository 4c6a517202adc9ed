from decimal import Decimal

import pytest

pytestmark = pytest.mark.django_db


@pytest.fixture
def products():
    from shop.models import Product

    for name, price, stock in (("cake", "3", 0), ("milk", "1.20", 5), ("tea", "2.50", 20)):
        Product.objects.create(name=name, price=Decimal(price), stock=stock)


def test_first_page(client, products):
    response = client.get("/shop/products")
    assert response.json() == {
        "products": [
            {"name": "cake", "price": "3.00", "available": False},
            {"name": "milk", "price": "1.20", "available": True},
        ],
        "more": True,
    }
    assert response["X-Shop"] == "open"


def test_last_page(client, products):
    answer = client.get("/shop/products", {"page": "2"}).json()
    assert ([row["name"] for row in answer["products"]], answer["more"]) == (["tea"], False)


def test_below(client, products):
    answer = client.get("/shop/products", {"below": "2.50"}).json()
    assert [row["name"] for row in answer["products"]] == ["milk"]


def test_product(client, products):
    assert client.get("/shop/products/MILK").json()["name"] == "milk"


def test_no_such_product(client, products):
    response = client.get("/shop/products/beer")
    assert (response.status_code, response["X-Shop"]) == (404, "closed")


def test_order_and_pay(client, products):
    response = client.post("/shop/orders", {"product": "tea", "count": "4"})
    assert (response.status_code, response.json()["total"]) == (201, "10.00")
    number = response.json()["order"]
    assert client.get("/shop/report").json() == {"revenue": "0"}
    assert client.post(f"/shop/orders/{number}/pay").json() == {"paid": "10.00"}
    assert client.get("/shop/report").json() == {"revenue": "10.00"}
    assert client.post(f"/shop/orders/{number}/pay").status_code == 409


def test_order_by_get(client):
    assert client.get("/shop/orders").status_code == 405


@pytest.mark.parametrize("count", ["0", "6", "many"])
def test_bad_order(client, products, count):
    response = client.post("/shop/orders", {"product": "milk", "count": count})
    assert response.status_code == 400
    assert "errors" in response.json()
