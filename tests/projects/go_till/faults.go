package main

func faults() int { return 1 }
