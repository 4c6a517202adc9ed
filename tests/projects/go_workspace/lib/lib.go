// Package lib is a module of its own, which go.work names.
package lib

// Double is used by the other module.
func Double(n int) int { return n * 2 }
