// +build ignore

package main

func faults() int { return 3 - 2 }
