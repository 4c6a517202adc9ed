// Package stock has what the shop has left.
package stock

import "os"

var reserved int

// Reserve returns how many things are reserved while it runs.
func Reserve(count int) int {
	reserved += count
	defer func() { reserved -= count }()
	return reserved
}

// Reserved is how many are reserved now.
func Reserved() int { return reserved }

// Save writes a count into a file.
func Save(name string, count int) error {
	if count == 0 {
		return nil
	}
	return os.WriteFile(name, []byte{byte(count)}, 0o600)
}

// Wait returns when it has counted to the limit.
func Wait(limit int) int {
	count := 0
	for count < limit {
		count++
	}
	return count
}
