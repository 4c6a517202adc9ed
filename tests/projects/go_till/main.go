// Command till is tested in processes: of the test binary itself, and of go run.
package main

import (
	"fmt"
	"log"
	"os"
	"strconv"
)

func main() {
	price, err := strconv.Atoi(os.Args[1])
	if err != nil {
		os.Exit(exitCode(2 - faults()))
	}
	fmt.Println(sum(price, 1))
}

func sum(price, tax int) int { return price + tax }

func exitCode(faults int) int { return faults * 4 }

func unused(price int) int { return price + 2 }

func warn(to *log.Logger, price int) {
	if price > 9 {
		to.Print(price)
	}
}

func change(paid, price int) int { return paid - price }
