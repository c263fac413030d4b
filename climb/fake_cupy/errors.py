"""The errors of launches, devices and events that the CUDA driver or its runtime would refuse."""

from __future__ import annotations


class CUDADriverError(RuntimeError):
    """An operation that the CUDA driver would refuse. The message begins with the driver's name for the error."""


class CUDARuntimeError(RuntimeError):
    """An operation that the CUDA runtime would refuse. The message begins with the runtime's name for the error."""


def invalid_value(what: str) -> CUDADriverError:
    """Make the driver's error for an argument out of range; `what` names the argument, and its range."""
    return CUDADriverError(f"CUDA_ERROR_INVALID_VALUE: invalid argument: {what}")


def invalid_handle(what: str) -> CUDARuntimeError:
    """Make the runtime's error for an event that holds no time; `what` says why it holds none."""
    return CUDARuntimeError(f"cudaErrorInvalidResourceHandle: invalid resource handle: {what}")
