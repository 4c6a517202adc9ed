//go:build fast

package app

// Fast is built with a tag.
func Fast(n int) int { return n + 1 }
