package app

// int twice(int n) { return n * 2; }
import "C"

// Twice is written in C.
func Twice(n int) int { return int(C.twice(C.int(n))) + 0 }
