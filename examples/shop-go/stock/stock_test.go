package stock_test

import (
	"os"
	"testing"

	"example.test/shop/stock"
)

func TestReserve(t *testing.T) {
	if stock.Reserve(2) != 2 {
		t.Fatal("reserve")
	}
}

func TestNothingIsLeft(t *testing.T) {
	if stock.Reserved() != 0 {
		t.Fatal("left")
	}
}

func TestSave(t *testing.T) {
	if _, err := os.Stat("saved"); err == nil {
		t.Fatal("an earlier run has left the file")
	}
	if err := stock.Save("saved", 1); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat("saved"); err != nil {
		t.Fatal(err)
	}
}

func TestWait(t *testing.T) {
	if stock.Wait(3) != 3 {
		t.Fatal("wait")
	}
}
