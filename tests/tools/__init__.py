"""What the tests of the house use: each module looks at one kind of thing and says what is wrong with it."""
