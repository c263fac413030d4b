"""Profiles of single topics, taken with Nsight Compute on a GPU: occupancy, and divergence.

``python -m climb.validation.profiles occupancy`` (or ``divergence``) takes one and writes
``records/<gpu>/profiles/<name>.json``, which chapters read and tests compare with what the project computes.
"""
