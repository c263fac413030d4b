"""Untyped registers: newer compilers declare only the size (.b32 %r), and kernels must run the same."""

from __future__ import annotations

import re

import numpy as np
import pytest
from harness import DeviceMemory, pointer

from climb.emulator import load, run
from climb.toolchain import compile_cuda

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
def test_untyped_registers_give_the_same_results(options):
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


@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        ("mov.b32 f, 0x3fc00000; mul.f32 %0, f, f;", 2.25),
        ("mov.u32 f, 0x3fc00000; add.f32 %0, f, f;", 3.0),
        ("mov.b32 %0, 0x3fc00000;", 1.5),
        ("mov.f32 %0, 0f3fc00000;", 1.5),
        ("mov.f32 %0, 1.5;", 1.5),
        ("{.reg .pred p; setp.ne.f32 p, %1, 0f00000000; selp.b32 f, 0x3fc00000, 0x40000000, p; mov.f32 %0, f;}", 1.5),
        ("mov.b32 f, 0x3fb8aa3bU; fma.rn.f32 %0, %1, f, 0f00000000;", float(np.float32(np.log2(np.e)))),
    ],
)
def test_mov_of_an_integer_to_a_float_register_moves_bits(code: str, wanted: float) -> None:
    """mov.b32 moves bits, however the register is used, as in the inline PTX of cuda_fp16.hpp."""
    body = f'asm volatile("{{.reg .b32 f; {code}}}" : "=f"(r) : "f"(*x));'
    source = f"__global__ void k(float* o, const float* x) {{ float r; {body} *o = r; }}"
    out = np.zeros(1, np.float32)
    run(source, grid=1, block=1, args=[out, np.ones(1, np.float32)])
    assert out[0] == np.float32(wanted)


@pytest.mark.parametrize(
    ("header", "type", "functions"),
    [
        ("cuda_fp16.h", "__half", "hexp hexp2 hexp10 hlog hlog2 hlog10 hsqrt hrsqrt hrcp hsin hcos"),
        ("cuda_bf16.h", "__nv_bfloat16", "hexp hexp2 hexp10 hlog hlog2 hlog10 hsqrt hrsqrt hrcp hsin hcos"),
    ],
)
def test_half_functions_run_with_untyped_registers(header: str, type: str, functions: str) -> None:
    names = functions.split()
    lines = "".join(f"o[{n} * 64 + t] = (float){name}(({type})x[t]);\n" for n, name in enumerate(names))
    source = f"#include <{header}>\n__global__ void k(float* o, const float* x) {{ int t = threadIdx.x;\n{lines} }}"
    x, out = np.linspace(0.125, 4, 64, dtype=np.float32), np.zeros((len(names), 64), np.float32)
    run(source, grid=1, block=64, args=[out, x])
    known = {"exp10": lambda v: 10**v, "rsqrt": lambda v: v**-0.5, "rcp": lambda v: 1 / v}
    digits = 11 if type == "__half" else 8
    rounded = x.astype(np.float16).astype(np.float64) if type == "__half" else _bfloat(x)
    for name, row in zip(names, out, strict=True):
        true = (known.get(name[1:]) or getattr(np, name[1:]))(rounded)
        assert np.all(np.abs(row - true) <= 2.0 ** (2 - digits) * np.maximum(np.abs(true), 2.0**-6)), name


def _bfloat(x: np.ndarray) -> np.ndarray:
    bits = x.view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32).astype(np.float64)
