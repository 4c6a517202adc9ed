// Package app uses another module, a file that it embeds, generics, and build tags.
package app

import (
	_ "embed"

	"example.test/lib"
)

//go:embed testdata/rate.txt
var rate string

// Rate is the first digit.
func Rate() int { return int(rate[0] - '0') }

// Quadruple needs the other module.
func Quadruple(n int) int { return lib.Double(n) + lib.Double(n) }

// Max is generic.
func Max[T int | string](a, b T) T {
	if a > b {
		return a
	}
	return b
}
