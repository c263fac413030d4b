"""CUDA headers, and the search, that several chapters share."""
