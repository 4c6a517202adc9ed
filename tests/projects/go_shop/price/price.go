// Package price has mutants of every kind that gremlins makes.
package price

import "errors"

// Limit is computed when a test binary starts.
var Limit = 10 * 10

const prefix = "a" + "b"

// Total has parameters without a name, a blank one and a variadic one.
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

// Free is weakly tested.
func Free(total int) bool { return total >= Limit }

// Grouped: the operator has to keep its operands.
func Grouped(a, b, c int) int { return a + b&c }

// Name can't be compiled with a minus.
func Name(name string) string { return prefix + name }

// Basket is generic, and its methods have a receiver.
type Basket[T any] struct{ items []T }

// Add adds.
func (b *Basket[T]) Add(item T) int {
	b.items = append(b.items, item)
	return len(b.items) + 0
}

// Map is generic.
func Map[A, B any](items []A, with func(A) B) []B {
	found := make([]B, 0, len(items)+1)
	for i := 0; i < len(items); i++ {
		found = append(found, with(items[i]))
	}
	return found
}

// Guarded recovers by itself, so a copy of it must be deferred itself.
func Guarded() { //nolint
	if recovered := recover(); recovered != nil {
		Limit = 100
	}
}

func unused(a, b int) int { return a - b }

func unnamed(name string) string { return prefix + name }

// IsBulk: go's coverage knows no expression of a case.
func IsBulk(quantity int) bool {
	switch quantity {
	case 36 + 9:
		return true
	}
	return false
}
