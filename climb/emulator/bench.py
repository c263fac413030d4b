"""The emulator's speed with counters on, in thread-instructions per second; `climb speed` prints it.

Each kernel is launched once to warm up, then three times in one process and three times in the number of processes that
launches use (`execution.workers`). The best of each is shown, with the time to load and link a kernel that was
translated before.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from climb.toolchain import compile_cuda

from .counters.counters import Counters
from .execution.module import load
from .execution.processes import pool
from .execution.workers import number_of_workers, workers
from .memory.device_memory import Allocation, DeviceMemory

SOURCE = r"""
extern "C" __global__ void transpose(const float* a, float* b, int n)
{
    __shared__ float tile[32][33];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8) tile[threadIdx.y + j][threadIdx.x] = a[(y + j) * n + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8) b[(y + j) * n + x] = tile[threadIdx.x][threadIdx.y + j];
}
extern "C" __global__ void sgemm(const float* a, const float* b, float* c, int n)
{
    int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    float sum = 0;
    for (int k = 0; k < n; ++k) sum += a[row * n + k] * b[k * n + column];
    c[row * n + column] = sum;
}
extern "C" __global__ void reduction(const float* in, float* out, int n)
{
    __shared__ float s[256];
    int t = threadIdx.x, i = blockIdx.x * 256 + t;
    s[t] = i < n ? in[i] : 0.f;
    __syncthreads();
    for (int k = 1; k < 256; k *= 2) {
        if (t % (2 * k) == 0) s[t] += s[t + k];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = s[0];
}
extern "C" __global__ void shuffles(const float* in, float* out, int n)
{
    float v = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) v += in[i];
    for (int d = 16; d; d /= 2) v += __shfl_down_sync(0xffffffffu, v, d);
    if (threadIdx.x % 32 == 0) atomicAdd(out, v);
}
__constant__ float weights[9];
extern "C" __global__ void convolution(const float* in, float* out, int n)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    float sum = 0;
    for (int i = -1; i <= 1; ++i)
        for (int j = -1; j <= 1; ++j)
            if (y + i >= 0 && y + i < n && x + j >= 0 && x + j < n)
                sum += in[(y + i) * n + x + j] * weights[(i + 1) * 3 + j + 1];
    out[y * n + x] = sum;
}
__constant__ float taps[125];
extern "C" __global__ void volume(const float* in, float* out, int n)
{
    int x = threadIdx.x, y = blockIdx.x * blockDim.y + threadIdx.y, z = blockIdx.y;
    float sum = 0;
    for (int i = -2; i <= 2; ++i)
        for (int j = -2; j <= 2; ++j)
            for (int k = -2; k <= 2; ++k)
                if (z + i >= 0 && z + i < n && y + j >= 0 && y + j < n && x + k >= 0 && x + k < n)
                    sum += in[((z + i) * n + y + j) * n + x + k] * taps[(i + 2) * 25 + (j + 2) * 5 + k + 2];
    out[(z * n + y) * n + x] = sum;
}
extern "C" __global__ void histogram(const unsigned char* in, unsigned* bins, int n)
{
    __shared__ unsigned mine[256];
    mine[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(mine + in[i], 1u);
    __syncthreads();
    atomicAdd(bins + threadIdx.x, mine[threadIdx.x]);
}
"""


@dataclass(frozen=True)
class Case:
    """A launch: sizes of the two or three buffers in bytes, and the last argument n."""

    kernel: str
    size: str
    grid: tuple[int, int]
    block: tuple[int, int]
    buffers: tuple[int, ...]
    n: int


CASES = (
    Case("transpose", "1024^2", (32, 32), (32, 8), (4 << 20, 4 << 20), 1024),
    Case("sgemm", "256^3", (16, 16), (16, 16), (1 << 18, 1 << 18, 1 << 18), 256),
    Case("reduction", "1M, tree", (4096, 1), (256, 1), (4 << 20, 4096 * 4), 1 << 20),
    Case("shuffles", "1M, shuffles", (256, 1), (256, 1), (4 << 20, 4), 1 << 20),
    Case("convolution", "512^2, 3x3", (16, 64), (32, 8), (1 << 20, 1 << 20), 512),
    Case("volume", "64^3, 5x5x5", (16, 64), (64, 4), (1 << 20, 1 << 20), 64),
    Case("histogram", "1M, 256 bins", (256, 1), (256, 1), (1 << 20, 1024), 1 << 20),
)


def _fill(allocation: Allocation, rng: np.random.Generator, whole: bool) -> None:
    values = (
        rng.integers(0, 256, allocation.nbytes, np.uint8) if whole else rng.random(allocation.nbytes // 4, np.float32)
    )
    allocation.data[:] = values.view(np.uint8)


def best_launch(launch: Callable[[], Counters]) -> tuple[float, int]:
    """Return the shortest of three launches after a warm-up launch, in seconds, and the thread-instructions of each."""
    number, times = launch().thread_instructions, []
    for _ in range(3):
        start = time.perf_counter()
        launch()
        times.append(time.perf_counter() - start)
    return min(times), number


def main() -> None:
    """Print one line for each case."""
    compiled = compile_cuda(SOURCE, filename="bench.cu")
    rng = np.random.default_rng(0)
    processes = number_of_workers()
    pool.start(processes - 1)  # their start-up time is not part of a launch
    columns = "".join(f"{f'{n} process' + 'es' * (n > 1):>14} {'M per s':>8}" for n in sorted({1, processes}))
    print(f"{'kernel':12} {'size':14} {'ready ms':>9} {'thread instr. M':>16}{columns}")
    for case in CASES:
        load(compiled.ptx, compiled.sources).kernel(case.kernel)  # from now on, its translation is kept
        start = time.perf_counter()
        kernel = load(compiled.ptx, compiled.sources).kernel(case.kernel)
        ready = time.perf_counter() - start
        memory = DeviceMemory()
        buffers = [memory.allocate(nbytes) for nbytes in case.buffers]
        for buffer in buffers[:-1]:
            _fill(buffer, rng, case.kernel == "histogram")
        args = [struct.pack("<Q", buffer.address) for buffer in buffers] + [struct.pack("<i", case.n)]
        launch = partial(kernel.launch, case.grid, case.block, args, memory=memory)
        columns, number = "", 0
        for count in sorted({1, processes}):
            with workers(count):
                best, number = best_launch(launch)
            columns += f"{1e3 * best:11.1f} ms {number / 1e6 / best:8.0f}"
        print(f"{case.kernel:12} {case.size:14} {1e3 * ready:9.1f} {number / 1e6:16.1f}{columns}", flush=True)
