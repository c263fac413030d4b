"""2D convolution: the ladder conv2d, exercises, and exhibits of two published mistakes."""
