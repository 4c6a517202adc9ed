module example.test/lib

go 1.21
