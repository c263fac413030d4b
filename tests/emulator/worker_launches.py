"""Kernels whose launches are compared in one process and in several, for tests that import the fixtures."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from harness import Device
from tools.both_ways import Tally, both_ways

from climb.emulator.execution.processes import pool

BLOCKS, THREADS = 20, 64


SOURCE = """
#include <cuda_fp16.h>
typedef unsigned long long wide;
#define KERNEL extern "C" __global__ void
#define I (blockIdx.x * blockDim.x + threadIdx.x)
__constant__ float table[4] = {1, 2, 3, 4};
__device__ int tally[8];
__device__ float last[64];
KERNEL store(const float* in, float* out) { out[I] = in[I] * table[I % 4]; }
KERNEL strided(const float4* in, double2* out, int n) {
    for (int i = I; i < n; i += gridDim.x * blockDim.x) {
        float4 v = in[i];
        out[2 * i] = make_double2(v.x + v.y, v.z * v.w);
    }
}
KERNEL bytes(const unsigned char* in, unsigned char* out) {
    if (threadIdx.x % 3 == 0) out[I] = in[I] + 1;
}
KERNEL in_place(float* x, int n) {
    for (int i = I; i < n; i += gridDim.x * blockDim.x) x[i] = 2 * x[i] + 1;
}
KERNEL interleaved(float* x) { int i = threadIdx.x * gridDim.x + blockIdx.x; x[i] = 2 * x[i] + 1; }
KERNEL sums(const float* in, float* sum, int* most, wide* bits, __half2* halves, unsigned* turns) {
    atomicAdd(sum + I % 3, in[I]);
    atomicMax(most, (int)(1000 * in[I]));
    atomicXor(bits, 1ull << I % 64);
    atomicAdd(halves, __floats2half2_rn(in[I], 1));
    atomicInc(turns, 6);
    atomicAdd(tally + I % 8, 1);
    if (threadIdx.x == 0) last[blockIdx.x] = in[I];
}
KERNEL shared(const float* in, float* out) {
    __shared__ float s[64];
    s[threadIdx.x] = in[I];
    __syncthreads();
    if (threadIdx.x < 20) out[I] = s[63 - threadIdx.x];
}
__global__ void __cluster_dims__(2) pairs(const float* in, float* out) {
    __shared__ float s[64];
    s[threadIdx.x] = in[I];
    asm volatile("barrier.cluster.arrive; barrier.cluster.wait;");
    unsigned at, rank = blockIdx.x % 2 ^ 1;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(at)
        : "r"((unsigned)__cvta_generic_to_shared(s + threadIdx.x)), "r"(rank));
    float v;
    asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(v) : "r"(at));
    asm volatile("barrier.cluster.arrive; barrier.cluster.wait;");
    out[I] = v;
}
KERNEL neighbour(float* x, int away) {
    if (I >= away) x[I] = x[I - away] + 1;
}
KERNEL following(float* x, float* out) {
    if (I < 640) out[I] = x[I + 640]; else x[I] = 1;
}
KERNEL overwritten(float* x, const float* in) { x[I % 640] = in[I]; }
KERNEL mixed(int* sum, int* out) {
    if (blockIdx.x < 8) atomicAdd(sum + I % 512, 1); else out[I] = sum[I % 512];
}
KERNEL exchanged(const float* in, float* out) { if (I < 900) atomicExch(out + I, in[I]); }
KERNEL unwritten(const float* in, float* out) { out[I] = I < 1270 ? 1 : in[I]; }
KERNEL slow(float* x, int n) {
    if (blockIdx.x == 0) x[1 << 16] = 1;
    for (int i = 0; i < n; i++) x[I] += i;
}
KERNEL counted(int* sum, int* out) {
    atomicAdd(sum + I, 1);
    out[I] = sum[I];
}
KERNEL outside(float* x, int first, int second) {
    x[I] = 1;
    if (I == first || I == second) x[1 << 16 | I] = 2;
}
KERNEL choice(const float* a, const float* b, float* out, int second) { out[I] = second ? b[I] : a[I]; }
KERNEL left_alone(const float* in, float* out) { if (I < 900) out[I] = in[I]; }
KERNEL ticket(int* next, int* out) { out[I] = atomicAdd(next, 1); }
KERNEL flag(volatile int* x, int* out) { out[I] = x[I]; }
KERNEL prints(int* x) { if (x[I]) printf("%d\\n", I); }
KERNEL takes(int** x) { x[I] = (int*)malloc(4); }
"""


@pytest.fixture(name="device", scope="module")
def kernels() -> Iterator[Device]:
    yield Device(SOURCE, names=("pairs",))
    pool.end()


@pytest.fixture(name="compared")
def both_ways_compared(monkeypatch: pytest.MonkeyPatch) -> Iterator[Tally]:
    with both_ways(monkeypatch) as tally:
        yield tally


def draw(dtype: type = np.float32, size: int = BLOCKS * THREADS) -> np.ndarray:
    return (100 * np.random.default_rng(3).random(size)).astype(dtype)


def empty(dtype: type = np.float32, size: int = BLOCKS * THREADS) -> np.ndarray:
    return np.zeros(size, dtype)
