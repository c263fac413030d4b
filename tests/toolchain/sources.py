"""Kernels that the tests of the toolchain compile, and the error of a source that does not compile."""

from __future__ import annotations

import pytest

from climb.toolchain import CompileError, compile_cuda

ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")
OLDEST, *BETWEEN, NEWEST = ARCHITECTURES

COPY = """\
extern "C" __global__ void copy(const float4* __restrict__ in, float4* __restrict__ out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float4 v = in[i];
        out[i] = v;
    }
}
"""

TILE = """\
template <int T>
__global__ void flip(const float* in, float* out) {
    __shared__ float tile[T][T + 1];
    tile[threadIdx.y][threadIdx.x] = in[threadIdx.y * T + threadIdx.x];
    __syncthreads();
    out[threadIdx.y * T + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}
"""

# Forty values are alive at once: they fit into 255 registers but not into 32.
HUNGRY = """\
extern "C" __global__ void hungry(float* a, int n) {
    float x[40];
    for (int i = 0; i < 40; i++) x[i] = a[i * n + threadIdx.x];
    __syncthreads();
    for (int i = 0; i < 40; i++) a[i * n + threadIdx.x] = x[i] * x[(i * 7) % 40];
}
"""


def compiled_error(source: str, **options: object) -> CompileError:
    """The CompileError of `source`, from NVRTC or from ptxas."""
    with pytest.raises(CompileError) as caught:
        compile_cuda(source, filename="bad.cu", **options).cubin  # noqa: B018 (machine code is made when asked for)
    return caught.value
