package app

import (
	"flag"
	"os"
	"testing"
)

var rates = flag.String("rates", "testdata/rate.txt", "")

func TestMain(m *testing.M) {
	flag.Parse()
	directory, err := os.MkdirTemp("", "app")
	if err != nil {
		os.Exit(9)
	}
	code := m.Run()
	os.RemoveAll(directory)
	os.Exit(code)
}

func TestRate(t *testing.T) {
	if text, err := os.ReadFile(*rates); err != nil || Rate() != int(text[0]-'0') {
		t.Fatal(err, Rate())
	}
}

func TestQuadruple(t *testing.T) {
	if Quadruple(3) != 12 {
		t.Fatal("quadruple")
	}
}

func TestMax(t *testing.T) {
	if Max(1, 2) != 2 || Max("b", "a") != "b" {
		t.Fatal("max")
	}
}

func TestTwice(t *testing.T) {
	if Twice(2) != 4 {
		t.Fatal("twice")
	}
}
