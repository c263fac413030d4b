"""The error of a launch or device that the CUDA driver would refuse."""

from __future__ import annotations


class CUDADriverError(RuntimeError):
    """What the CUDA driver would refuse. The message begins with the driver's name for the error."""


def invalid_value(what: str) -> CUDADriverError:
    """The driver's error for an argument out of range; `what` says which argument, and its range."""
    return CUDADriverError(f"CUDA_ERROR_INVALID_VALUE: invalid argument: {what}")
