"""Checks: find races, uninitialised reads and other faults while a kernel runs, and report them as errors."""
