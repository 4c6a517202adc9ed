// Package text has no tests.
package text

// Longer compares.
func Longer(a, b string) bool { return len(a) > len(b) }
