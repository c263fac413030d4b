"""The state that a cold sample starts from: an L2 cache without the kernel's data and with nothing to write back.

NVBench flushes L2 by overwriting a buffer as large as the cache. That evicts everything else, but leaves the cache full
of modified lines, which the next kernel has to write to memory to make room: up to one L2 cache of traffic that belongs
to another kernel. The regime "dirty" is measured after that flush alone. For "cold", a clean buffer is then read
through the cache.
"""

from __future__ import annotations

from typing import Any

#: The size of the clean buffer in units of the L2 cache. Reading four times the cache leaves no modified line: Nsight
#: Compute then counts no byte written to memory by a kernel that only reads.
CACHES = 4
_THREADS = 256

_SOURCE = r"""
extern "C" __global__ void read_through(const float4* __restrict__ data, size_t count, float* __restrict__ never)
{
    float sum = 0.0f;
    const size_t stride = static_cast<size_t>(gridDim.x) * blockDim.x;
    for (size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
        const float4 value = data[i];
        sum += (value.x + value.y) + (value.z + value.w);
    }
    if (sum != 0.0f) {  // the data are zeros: nothing is written, and the compiler cannot know it
        *never = sum;
    }
}
"""


class CacheCleaner:
    """Reads a clean buffer through the L2 cache, on its own stream. It needs CuPy and a GPU.

    A call returns when the buffer has been read; meanwhile NVBench's blocking kernel may hold back another stream.
    """

    def __init__(self) -> None:
        import cupy

        device = cupy.cuda.Device()
        self._data = cupy.zeros(CACHES * device.attributes["L2CacheSize"] // 4, dtype=cupy.float32)
        self._never = cupy.zeros(1, dtype=cupy.float32)
        self._blocks = 8 * device.attributes["MultiProcessorCount"]
        self._stream = cupy.cuda.Stream(non_blocking=True)
        self._kernel = cupy.RawKernel(_SOURCE, "read_through")
        device.synchronize()
        # Loading a kernel may wait for the whole GPU, and the blocking kernel would never let it: load it now.
        self()

    def __call__(self) -> None:
        arguments: tuple[Any, ...] = (self._data, self._data.size // 4, self._never)
        self._kernel((self._blocks,), (_THREADS,), arguments, stream=self._stream)
        self._stream.synchronize()
