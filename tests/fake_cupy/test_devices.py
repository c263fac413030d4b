"""Several emulated GPUs: the current device, whose memory an array is in, and kernels that reach another's."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from climb import fake_cupy as cp
from climb.fake_cupy import current
from climb.fake_cupy.errors import CUDADriverError, CUDARuntimeError

COPY = r"""extern "C" __global__ void copy(const float* from, float* to) { to[threadIdx.x] = from[threadIdx.x]; }"""


@pytest.fixture(autouse=True)
def two_devices() -> Iterator[None]:
    before = current.set_count(2)
    yield
    current.set_count(before)
    current.use(0)


def test_a_device_is_current_within_its_block() -> None:
    with cp.cuda.Device(1) as device:
        assert cp.cuda.runtime.getDevice() == device.id == cp.cuda.Device().id == 1
        assert cp.zeros(1).device == cp.cuda.Device(1)
    assert cp.cuda.runtime.getDevice() == 0 and cp.zeros(1).device.id == 0


def test_device_that_is_not_there_is_refused() -> None:
    with pytest.raises(CUDADriverError, match="there are 2 emulated devices, and none has number 2"):
        cp.cuda.Device(2)


def test_kernel_reads_another_device_only_with_peer_access() -> None:
    kernel = cp.RawKernel(COPY, "copy")
    with cp.cuda.Device(1):
        there = cp.arange(4, dtype=cp.float32)
    here = cp.zeros(4, dtype=cp.float32)
    with pytest.raises(CUDADriverError, match=r"accesses from, which is on device 1; .*deviceEnablePeerAccess"):
        kernel((1,), (4,), (there, here))
    cp.cuda.runtime.deviceEnablePeerAccess(1)
    kernel((1,), (4,), (there, here))
    np.testing.assert_array_equal(cp.asnumpy(here), [0, 1, 2, 3])
    with cp.cuda.Device(1), pytest.raises(CUDADriverError, match="which is on device 0"):
        kernel((1,), (4,), (here, there))  # access is enabled in one direction
    with pytest.raises(CUDARuntimeError, match="AlreadyEnabled"):
        cp.cuda.runtime.deviceEnablePeerAccess(1)


def test_memory_handle_maps_an_array_of_another_device() -> None:
    with cp.cuda.Device(1):
        there = cp.arange(4, dtype=cp.float32)
        handle = cp.cuda.runtime.ipcGetMemHandle(there.data.ptr)
    ptr = cp.cuda.runtime.ipcOpenMemHandle(handle)
    mapped = cp.ndarray(4, cp.float32, cp.cuda.MemoryPointer(cp.cuda.UnownedMemory(ptr, 16, None), 0))
    here = cp.zeros(4, dtype=cp.float32)
    cp.RawKernel(COPY, "copy")((1,), (4,), (mapped, here))
    np.testing.assert_array_equal(cp.asnumpy(here), [0, 1, 2, 3])
    assert mapped.device.id == 1
    with pytest.raises(CUDARuntimeError, match="no memory has this handle"):
        cp.cuda.runtime.ipcOpenMemHandle(b"x" * 64)
    with pytest.raises(CUDARuntimeError, match="no allocation begins"):
        cp.cuda.runtime.ipcGetMemHandle(there.data.ptr + 4)
