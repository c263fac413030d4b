"""The parts of ``climb emulate``: what its arguments mean, its exit statuses, its JSON and its page."""
