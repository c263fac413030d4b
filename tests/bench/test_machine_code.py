"""What is read from machine code."""

from __future__ import annotations

import pytest

from climb.bench.machine_code import longest_chain
from climb.toolchain import compile_cuda

SUMS = """
template <int kSums>
__global__ void sums(const float* x, float* y)
{
    float sum[kSums] = {};
#pragma unroll
    for (int i = 0; i < 12; ++i) sum[i % kSums] += x[i] * x[i + 12];
    for (int s = 0; s < kSums; ++s) y[s] = sum[s];
}
"""


@pytest.mark.parametrize("sums", [1, 3])
def test_chain_is_as_long_as_the_products_of_one_sum(sums: int) -> None:
    kernel = f"sums<{sums}>"
    built = compile_cuda(SUMS, filename="sums.cu", options=("-std=c++17",), name_expressions=(kernel,))
    assert longest_chain(built, kernel) == 12 // sums
    assert longest_chain(built, kernel, "DFMA") == 0
