"""The parts of ``climb emulate``: its arguments, its exit statuses, its JSON and its page."""
