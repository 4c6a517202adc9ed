module example.test/nested

go 1.21
