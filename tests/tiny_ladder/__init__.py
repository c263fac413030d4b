"""Small ladders that the tests of the bench use, so that they need none of the book's."""
