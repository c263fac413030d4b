"""The emulated GPUs and each thread's choice among them: their number, the current one, and their access to each
other's memory."""

from __future__ import annotations

import os
import threading

from climb.fake_cupy.errors import CUDADriverError, CUDARuntimeError

#: The number of GPUs of the emulated machine, unless ``CLIMB_DEVICES`` sets it.
DEVICES = 2


class _State(threading.local):
    """The current device of each thread, as in the CUDA runtime."""

    device = 0


_state = _State()
_count = int(os.environ.get("CLIMB_DEVICES", DEVICES))
#: Pairs (device, other): kernels on `device` may access the memory of `other`.
_peers: set[tuple[int, int]] = set()


def count() -> int:
    """Return the number of emulated devices."""
    return _count


def set_count(devices: int) -> int:
    """Set the number of devices of the emulated machine; return the previous number. Peer access is off again."""
    global _count
    if devices < 1:
        raise ValueError(f"a machine has at least one device, not {devices}")
    before, _count = _count, devices
    _peers.clear()
    return before


def current() -> int:
    """Return the number of this thread's current device."""
    return _state.device


def use(device: int) -> None:
    """Make a device the current one of this thread. Raises CUDADriverError if there is no such device."""
    _state.device = check(device)


def check(device: int) -> int:
    """Return the number of a device that exists. Raises CUDADriverError for another."""
    if not 0 <= int(device) < _count:
        there = "there is one emulated device, number 0" if _count == 1 else f"there are {_count} emulated devices"
        raise CUDADriverError(f"CUDA_ERROR_INVALID_DEVICE: {there}, and none has number {device}")
    return int(device)


def enable_peer_access(peer: int) -> None:
    """``deviceEnablePeerAccess``: kernels on the current device may access the memory of `peer` from now on.

    Raises CUDARuntimeError if they may already, as CUDA does, and for the device itself.
    """
    pair = (current(), check(peer))
    if pair[0] == pair[1]:
        raise CUDARuntimeError("cudaErrorInvalidDevice: a device needs no peer access to itself")
    if pair in _peers:
        raise CUDARuntimeError("cudaErrorPeerAccessAlreadyEnabled: peer access is already enabled")
    _peers.add(pair)


def open_peer(peer: int) -> None:
    """Enable peer access of the current device to `peer` unless it is enabled, like opening an IPC handle."""
    if peer != current():
        _peers.add((current(), peer))


def may_access(device: int, owner: int) -> bool:
    """Return whether kernels on `device` may access the memory of `owner`."""
    return device == owner or (device, owner) in _peers
