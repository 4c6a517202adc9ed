module example.test/till

go 1.21
