"""Newer compilers declare every register by its size only (.b32 %r): the same kernel must run the same."""

from __future__ import annotations

import re

import numpy as np
import pytest
from harness import DeviceMemory, pointer

from kernels.emulator import load
from kernels.toolchain import compile_cuda

SOURCE = r"""
extern "C" __global__ void k(const float* a, float* o, const double* d, int n) {
    __shared__ float s[64]; int t = threadIdx.x; float v = a[t];
    for (int i = 0; i < n; ++i) { v = v * a[i] + 0.5f; if (v > 2.0f) v = fabsf(v) - (float)i; s[t] = v; __syncthreads();
        v += s[63 - t] * 0.25f; __syncthreads(); }
    if (t % 3 == 0) v = __int_as_float(__float_as_int(v) ^ 0x80000000);
    o[t] = (float)(d[t] * v) + (t & 1 ? v : -v);
}
"""


@pytest.mark.parametrize("options", [(), ("-ftz=false",)])
def test_registers_of_bits_only(options):
    text = compile_cuda(SOURCE, filename="k.cu", options=options).ptx
    untyped = re.sub(r"\.reg \.f(32|64)", r".reg .b\1", text)
    assert untyped != text
    results = []
    for one in (text, untyped):
        memory, rng = DeviceMemory(), np.random.default_rng(0)
        a, o, d = (memory.allocate(n) for n in (256, 256, 512))
        a.data[:] = rng.standard_normal(64).astype(np.float32).view(np.uint8)
        d.data[:] = rng.standard_normal(64).view(np.uint8)
        counters = (
            load(one)
            .kernel("k")
            .launch(1, 64, [pointer(a), pointer(o), pointer(d), (9).to_bytes(4, "little")], memory=memory)
        )
        results.append((o.data.tolist(), counters))
    assert results[0] == results[1] and any(results[0][0])
