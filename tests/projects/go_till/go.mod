module example.test/till

// Files that are added must be of this language.
go 1.12
