// Package stock keeps state between tests, and writes files.
package stock

import "os"

var reserved int

// Reserve leaves something behind if a mutant makes it.
func Reserve(count int) int {
	reserved += count
	defer func() { reserved -= count }()
	return reserved
}

// Reserved is what is left.
func Reserved() int { return reserved }

// Save writes beside the sources.
func Save(name string, count int) error {
	if count == 0 {
		return nil
	}
	return os.WriteFile(name, []byte{byte(count)}, 0o600)
}

// Wait ends when it has counted to the end.
func Wait(limit int) int {
	count := 0
	for count < limit {
		count++
	}
	return count
}
