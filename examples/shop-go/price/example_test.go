package price_test

import (
	"fmt"

	"example.test/shop/price"
)

func ExampleMap() {
	fmt.Println(price.Map([]int{1, 2}, func(i int) int { return -i }))
	// Output: [-1 -2]
}
