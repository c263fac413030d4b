"""Profiles that Nsight Compute takes of single kernels: their occupancy, and what they execute when they diverge."""
