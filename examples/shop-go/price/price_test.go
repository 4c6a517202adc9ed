package price

import (
	"os"
	"testing"
)

func TestMain(m *testing.M) { os.Exit(m.Run()) }

func TestTotal(t *testing.T) {
	for _, each := range []struct{ quantity, want int }{{3, 28}, {0, -2}} {
		got, err := Total("", each.quantity, 10, 1, 1)
		if got != each.want || err != nil {
			t.Errorf("got %d", got)
		}
	}
	if _, err := Total("", -1, 10); err == nil {
		t.Error("no error")
	}
}

func TestFree(t *testing.T) {
	if Free(5) || !Free(500) {
		t.Fatal("free")
	}
}

func TestShelf(t *testing.T) {
	if Shelf(4, 6, 3) != 6 {
		t.Fatal("shelf")
	}
}

func TestBasket(t *testing.T) {
	var basket Basket[string]
	if basket.Add("x") != 1 || basket.Add("y") != 2 {
		t.Fatal("basket")
	}
	if Label("c") != "shop-c" {
		t.Fatal("label")
	}
}

func TestReset(t *testing.T) {
	defer Reset()
	panic("expected")
}

func TestIsBulk(t *testing.T) {
	if !IsBulk(45) {
		t.Fatal("bulk")
	}
}
