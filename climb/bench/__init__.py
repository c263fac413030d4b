"""The bench: problems, ladders, checked launches, verifying, measuring, records."""
