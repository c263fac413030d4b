"""Tools of the repository's tests: each module looks at one kind of thing and says what is wrong with it."""
