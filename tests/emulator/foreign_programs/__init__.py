"""Kernels of public projects, rewritten from the idea: their launches, expected outputs and planted bugs."""
