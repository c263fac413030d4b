"""The CUDA source that the tests of `climb.fake_cupy` launch, and an array of numbers in order."""

from __future__ import annotations

from typing import Any

import numpy as np

SOURCE = r"""
__constant__ float filter[4];
__device__ int counter;

extern "C" __global__ void axpy(const float* __restrict__ x, float* __restrict__ y, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}

// Each output is a window of four inputs, weighted by the filter.
extern "C" __global__ void convolve(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i + 3 < n)
        y[i] = filter[0] * x[i] + filter[1] * x[i + 1] + filter[2] * x[i + 2] + filter[3] * x[i + 3];
}

extern "C" __global__ void vectors(const float4* in, float4* out) { out[threadIdx.x] = in[threadIdx.x]; }

extern "C" __global__ void dynamic(float* out) {
    extern __shared__ float shared[];
    shared[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = shared[blockDim.x - 1 - threadIdx.x];
}

extern "C" __global__ void __launch_bounds__(64) small(int* out) { out[threadIdx.x] = 1; }

extern "C" __global__ void scalars(double* out, bool flag, unsigned char byte, short half, unsigned word,
                                   long long wide, float single, double twice, size_t n) {
    out[0] = flag; out[1] = byte; out[2] = half; out[3] = word; out[4] = (double)wide; out[5] = single; out[6] = twice;
    out[7] = (double)n;
}

template <typename T, int N>
__global__ void shifted(const T* in, T* out) {
    __shared__ T tile[N];
    tile[threadIdx.x] = in[blockIdx.x * N + threadIdx.x];
    __syncthreads();
    out[blockIdx.x * N + threadIdx.x] = tile[(threadIdx.x + 1) % N];
}
"""
EXPRESSIONS = ("shifted<float, 128>", "shifted<int, 32>")


def ramp(n: int, dtype: Any = np.float32) -> np.ndarray:
    """0, 1, ... n - 1."""
    return np.arange(n, dtype=dtype)
