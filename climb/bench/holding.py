"""A kernel that holds a stream back, so that the host enqueues all timed work before the first of it starts."""

from __future__ import annotations

from typing import Any

import numpy as np

from climb.bench.cuda import cp

_SOURCE = r"""
extern "C" __global__ void hold(unsigned long long nanoseconds)
{
    unsigned long long start, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do {
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    } while (now - start < nanoseconds);
}
"""


class Hold:
    """Call it to keep a stream busy for some nanoseconds; None is the current stream."""

    def __init__(self) -> None:
        self._kernel = cp.RawKernel(_SOURCE, "hold")

    def __call__(self, nanoseconds: int, stream: Any = None) -> None:
        self._kernel((1,), (1,), (np.uint64(nanoseconds),), stream=stream)
