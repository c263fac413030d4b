"""Lanes that wait for others: whatever Volta and later GPUs guarantee to finish must finish."""

from __future__ import annotations

import numpy as np
import pytest
from harness import Device

from climb.emulator import EndlessLoop


def test_lanes_of_one_warp_can_contend_for_a_lock():
    device = Device(
        r"""extern "C" __global__ void k(int* lock, volatile int* sum) {
        while (atomicCAS(lock, 0, 1) != 0) { }
        sum[0] = sum[0] + 1; __threadfence();
        atomicExch(lock, 0); }"""
    )
    lock, total = np.zeros(1, np.int32), np.zeros(1, np.int32)
    device.launch("k", 2, 36, lock, total)
    assert (total[0], lock[0]) == (72, 0)


def test_one_warp_can_wait_for_another():
    device = Device(
        r"""extern "C" __global__ void k(volatile int* flag, int* o) { int t = threadIdx.x;
        if (t < 32) { while (flag[0] == 0) { } o[t] = flag[1]; }
        else if (t == 40) { flag[1] = 77; __threadfence(); flag[0] = 1; } }"""
    )
    out = np.zeros(32, np.int32)
    device.launch("k", 1, 64, np.zeros(2, np.int32), out)
    assert out.tolist() == [77] * 32


def test_blocks_can_wait_in_a_chain():
    """Each block waits for the previous one, as in a single-pass scan."""
    device = Device(
        r"""extern "C" __global__ void k(const int* a, volatile int* done, volatile int* sums, int* o) {
        __shared__ int before; int b = blockIdx.x, t = threadIdx.x;
        if (t == 0) { if (b) { while (done[b - 1] == 0) { } } before = b ? sums[b - 1] : 0;
          sums[b] = before + a[b]; __threadfence(); done[b] = 1; }
        __syncthreads(); o[b * 32 + t] = before; }"""
    )
    data, out = np.arange(1, 21, dtype=np.int32), np.zeros((20, 32), np.int32)
    device.launch("k", 20, 32, data, np.zeros(20, np.int32), np.zeros(20, np.int32), out)
    want = [0, *np.cumsum(data)[:-1].tolist()]
    assert out.tolist() == [[v] * 32 for v in want]


def test_a_wait_that_nothing_ends_is_an_endless_loop():
    device = Device(
        'extern "C" __global__ void k(volatile int* o) { if (threadIdx.x < 3) while (o[0] == 0) { } o[1] = 1; }'
    )
    with pytest.raises(EndlessLoop):
        device.launch("k", 1, 32, np.zeros(2, np.int32), max_steps=3000)


def test_lanes_reconverge_after_a_loop_with_atomics():
    """Lanes that leave a CAS loop early wait for the others, so the warp stores once."""
    device = Device(
        r"""extern "C" __global__ void k(unsigned* m, int* o) { unsigned old = *m, seen; int n = 0;
        do { seen = old; old = atomicCAS(m, seen, seen * 3 + threadIdx.x + 1); ++n; } while (old != seen);
        o[threadIdx.x] = n; }"""
    )
    out = np.zeros(32, np.int32)
    found = device.launch("k", 1, 32, np.zeros(1, np.uint32), out)
    assert out.tolist() == list(range(1, 33)) and found.total("global store").requests == 1


MEETING = r"""extern "C" __global__ void k(unsigned* met, const float* a, float* o) {
    int b = blockIdx.x, t = threadIdx.x;
    o[b * blockDim.x + t] = a[b * blockDim.x + t];
    __syncthreads();
    if (t == 0) {
        unsigned now;
        asm volatile("red.release.gpu.global.add.u32 [%0], 1;" :: "l"(met) : "memory");
        do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(met) : "memory");
        while (now < gridDim.x);
    }
    __syncthreads();
    if (b == 0) for (int other = 1; other < gridDim.x; ++other) o[t] += o[other * blockDim.x + t]; }"""


def test_blocks_that_fit_on_the_gpu_can_wait_for_each_other_in_a_large_launch():
    """66 blocks of 1024 threads are more lanes than a batch has, and half of what the GPU runs at a time."""
    data = np.random.default_rng(0).integers(0, 9, (66, 1024)).astype(np.float32)
    out = np.zeros_like(data)
    Device(MEETING).launch("k", 66, 1024, np.zeros(1, np.uint32), data, out)
    assert np.array_equal(out[0], data.sum(0)) and np.array_equal(out[1:], data[1:])


def test_blocks_that_do_not_fit_on_the_gpu_wait_in_vain():
    data = np.zeros((400, 1024), np.float32)
    with pytest.raises(EndlessLoop):
        Device(MEETING).launch("k", 400, 1024, np.zeros(1, np.uint32), data, np.zeros_like(data), max_steps=30000)
