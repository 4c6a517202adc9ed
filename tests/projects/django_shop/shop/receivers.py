from django.db.models.signals import post_save
from django.dispatch import receiver

from .models import Event, Order


@receiver(post_save, sender=Order)
def note_order(sender, instance, created, **rest):
    if created:
        Event.objects.create(text=f"{instance.count} x {instance.product.name}")
