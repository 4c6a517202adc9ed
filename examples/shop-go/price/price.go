// Package price has what things cost in a shop.
package price

import "errors"

// Limit is the total from which on delivery is free.
var Limit = 10 * 10

const prefix = "shop" + "-"

// Total is what a customer pays for some pieces of one thing, without the discounts.
func Total(_ string, quantity, price int, discounts ...int) (sum int, err error) {
	if quantity < 0 {
		return 0, errors.New("negative")
	}
	sum = quantity * price
	for i := 0; i < len(discounts); i++ {
		sum -= discounts[i]
	}
	return sum, nil
}

// Free says whether delivery costs nothing.
func Free(total int) bool { return total >= Limit }

// Shelf is the number of the shelf of a product.
func Shelf(aisle, product, mask int) int { return aisle + product&mask }

// Label is what stands on a product.
func Label(name string) string { return prefix + name }

// Basket holds what a customer has chosen.
type Basket[T any] struct{ items []T }

// Add returns how many things are in the basket now, with those that come for free.
func (b *Basket[T]) Add(item T, gifts ...T) int {
	b.items = append(b.items, item)
	return len(b.items) + len(gifts)
}

// Map is each item with what a function makes of it.
func Map[A, B any](items []A, with func(A) B) []B {
	found := make([]B, 0, len(items)+1)
	for i := 0; i < len(items); i++ {
		found = append(found, with(items[i]))
	}
	return found
}

// Reset is deferred: it sets the limit back after a panic.
func Reset() { //nolint
	if recovered := recover(); recovered != nil {
		Limit = 100
	}
}

func margin(price, cost int) int { return price - cost }

func offer(name string) string { return prefix + name }

// IsBulk says whether it is a whole pallet.
func IsBulk(quantity int) bool {
	switch quantity {
	case 36 + 9:
		return true
	}
	return false
}
