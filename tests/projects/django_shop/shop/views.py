from django.http import JsonResponse
from django.shortcuts import get_object_or_404

from .forms import OrderForm
from .models import Order, Product
from .reports import revenue

PAGE = 2


def as_row(product):
    return {"name": product.name, "price": str(product.price), "available": product.stock > 0}


def products(request):
    found = Product.objects.order_by("name")
    if "below" in request.GET:
        found = found.filter(price__lt=request.GET["below"])
    page = int(request.GET.get("page", "1"))
    start = (page - 1) * PAGE
    rows = [as_row(product) for product in found[start : start + PAGE]]
    return JsonResponse({"products": rows, "more": found.count() > start + PAGE})


def product(request, name):
    return JsonResponse(as_row(get_object_or_404(Product, name=name)))


def order(request):
    if request.method != "POST":
        return JsonResponse({"error": "POST it"}, status=405)
    form = OrderForm(request.POST)
    if not form.is_valid():
        return JsonResponse({"errors": form.errors}, status=400)
    found = form.cleaned_data["product"]
    found.take(form.cleaned_data["count"])
    made = Order.objects.create(product=found, count=form.cleaned_data["count"])
    return JsonResponse({"order": made.pk, "total": str(made.total)}, status=201)


def pay(request, number):
    found = get_object_or_404(Order, pk=number)
    if found.paid:
        return JsonResponse({"error": "paid already"}, status=409)
    found.paid = True
    found.save()
    return JsonResponse({"paid": str(found.total)})


def report(request):
    return JsonResponse({"revenue": str(revenue(Order.objects.all()))})
