// A comment may come first.
module example.test/shop

go 1.21
