this is no Go: a > b
