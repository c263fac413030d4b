"""Tiling: the ladders matmul, stencil1d and stencil2d, exercises, and exhibits."""
