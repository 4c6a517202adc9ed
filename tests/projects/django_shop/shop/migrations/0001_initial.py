import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True
    dependencies = []
    operations = [
        migrations.CreateModel(
            "Product",
            [
                ("id", models.BigAutoField(primary_key=True)),
                ("name", models.CharField(max_length=40, unique=True)),
                ("price", models.DecimalField(max_digits=8, decimal_places=2)),
                ("stock", models.PositiveIntegerField(default=0)),
            ],
        ),
        migrations.CreateModel(
            "Order",
            [
                ("id", models.BigAutoField(primary_key=True)),
                ("count", models.PositiveIntegerField()),
                ("paid", models.BooleanField(default=False)),
                (
                    "product",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="orders", to="shop.product"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            "Event",
            [("id", models.BigAutoField(primary_key=True)), ("text", models.CharField(max_length=80))],
        ),
    ]
