from django.urls import path, register_converter

from . import views
from .converters import LowerConverter

register_converter(LowerConverter, "lower")

urlpatterns = [
    path("products", views.products),
    path("products/<lower:name>", views.product),
    path("orders", views.order),
    path("orders/<int:number>/pay", views.pay),
    path("report", views.report),
]
