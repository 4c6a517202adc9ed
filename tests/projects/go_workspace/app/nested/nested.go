// Package nested is a module of its own, which go.work does not name.
package nested

// Half halves.
func Half(n int) int { return n / 2 }
