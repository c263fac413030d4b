"""The CUDA kernels of the book, and the Python that compiles, runs, counts and measures them."""
