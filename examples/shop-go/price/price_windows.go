package price

// HasPrinter is built on Windows only.
func HasPrinter(ports int) bool { return ports > 1 }
