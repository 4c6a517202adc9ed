from django import forms

from .models import Product


class OrderForm(forms.Form):
    product = forms.ModelChoiceField(Product.objects.all(), to_field_name="name")
    count = forms.IntegerField(min_value=1, max_value=100)

    def clean(self):
        cleaned = super().clean()
        product, count = cleaned.get("product"), cleaned.get("count")
        if product and count and count > product.stock:
            raise forms.ValidationError("so many are not there")
        return cleaned
