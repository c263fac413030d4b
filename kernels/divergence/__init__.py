"""Divergence: the ladder divergence, exercises, and exhibits whose branches the chapter counts."""
