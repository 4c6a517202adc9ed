package price

// Only is not built elsewhere.
func Only(a int) bool { return a > 1 }
