//go:build fast

package app

import "testing"

func TestFast(t *testing.T) {
	if Fast(1) != 2 {
		t.Fatal("fast")
	}
}
