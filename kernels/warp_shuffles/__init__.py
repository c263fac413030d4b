"""Warp shuffles: the ladders reduction, reduction_max, accurate_sum and argmax, exercises, and exhibits."""
