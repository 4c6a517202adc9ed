package lib

import "testing"

func TestDouble(t *testing.T) {
	if Double(3) != 6 {
		t.Fatal(Double(3))
	}
}
