"""CUDA headers, the search, and the problem of a matrix product, which several chapters share."""
