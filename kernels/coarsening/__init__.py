"""Thread coarsening: the ladders coarse_stencil, coarse_matmul and coarse_histogram, exercises, and an exhibit."""
