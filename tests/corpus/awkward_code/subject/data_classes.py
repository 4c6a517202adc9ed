# Dataclasses: generated methods, default factories, __post_init__.
from dataclasses import dataclass, field


def first_tags():
    return ["new"]


@dataclass(order=True)
class Item:
    price: int
    name: str = field(default="?", compare=False)
    tags: list = field(default_factory=first_tags)
    total: int = field(init=False, default=0)

    def __post_init__(self):
        self.total = self.price * 2

    def cheaper(self, other):
        return self.price < other.price
