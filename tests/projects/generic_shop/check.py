"""The tests of this project, without any framework."""

from prices.discount import bonus
from prices.money import affordable, label, total
from texts.labels import joined, same

assert total(2, 3) == 6
assert label(2, 3) == "🍎 é6¢"
assert affordable(2, 3)
assert not affordable(4, 3)
assert bonus(7) == 14
assert joined("a", "b") == "a-b"
assert same("a", "a")
