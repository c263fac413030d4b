"""Vectorised access: the ladder saxpy, exercises, and exhibits of misaligned, oversized and narrow accesses."""
