"""Facts that are read from machine code."""

from __future__ import annotations

import pytest

from climb.bench import machine_code
from climb.bench.machine_code import longest_chain
from climb.toolchain import Instruction, compile_cuda

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


def test_another_instruction_ends_a_chain(monkeypatch: pytest.MonkeyPatch) -> None:
    code = [("FFMA", "R2, R4, R5, RZ"), ("FFMA", "R2, R4, R6, R2.reuse"), ("FFMA", "R3, -R2, R4, R7"),
            ("FMUL", "R3, R8, R8"), ("FFMA", "R3, R4, R5, R3")]  # fmt: skip
    found = tuple(Instruction(16 * n, "", opcode, operands, 1, "x.cu") for n, (opcode, operands) in enumerate(code))
    monkeypatch.setattr(machine_code, "disassemble", lambda code, kernel: found)
    assert longest_chain(object(), "x") == 3
    monkeypatch.setattr(machine_code, "disassemble", lambda code, kernel: found[2:])
    assert longest_chain(object(), "x") == 1
