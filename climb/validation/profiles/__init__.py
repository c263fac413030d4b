"""Profiles of single topics, taken with Nsight Compute on a GPU: occupancy, and divergence.

``climb occupancy`` and ``climb divergence`` write ``records/<gpu>/profiles/<name>.json``, which chapters read and tests
compare with the project's own results.
"""
