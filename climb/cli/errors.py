"""Errors of commands that cannot do what was asked; ``climb.cli.main`` prints the message, which is one line."""

from __future__ import annotations


class UsageError(Exception):
    """The command line names something that does not exist or does not fit. Exit status 2."""


class Unavailable(Exception):
    """This machine lacks what the command needs, a GPU say. Exit status 1."""
