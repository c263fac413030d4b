"""The first use of a load, in machine code that was written for the test and in compiled kernels."""

from __future__ import annotations

import pytest

from climb.display.first_use_table import first_use_table
from climb.toolchain import Instruction, compile_cuda, disassemble
from climb.toolchain.first_use import first_uses

HALVE = """
extern "C" __global__ void halve(const float* __restrict__ x, float* __restrict__ y, int n)
{
#pragma unroll LOADS
    for (int i = threadIdx.x; i < n; i += 128) {
        const float v = x[i];
        y[i] = 0.5f * v;
    }
}
"""


def code(*lines: str) -> tuple[Instruction, ...]:
    """Instructions from lines such as "@P0 LDG.E R4, [R2.64]", one source line each."""
    made = []
    for number, line in enumerate(lines, 1):
        predicate, _, rest = line.partition(" ") if line.startswith("@") else ("", "", line)
        opcode, _, operands = rest.partition(" ")
        made.append(Instruction(16 * number, predicate, opcode, operands, number, "x.cu"))
    return tuple(made)


@pytest.mark.parametrize(
    ("lines", "pairs"),
    [
        (("LDG.E R4, [R2.64]", "IADD3 R5, R6, R7, RZ", "FADD R8, R4, R5"), [(1, 3, 1)]),
        (("LDG.E R4, [R2.64]", "LDG.E R5, [R2.64+0x4]", "FADD R8, R5, R4"), [(1, 3, 2), (2, 3, 1)]),
        (("LDG.E.128 R4, [R2.64]", "FADD R8, R7, R9"), [(1, 2, 1)]),
        (("LDG.E.64 R4, [R2.64]", "FADD R8, R6, R9", "FADD R8, R5, R9"), [(1, 3, 1)]),
        (("LDG.E R4, [R2.64]", "STG.E [R4.64], R9"), [(1, 2, 1)]),
        (("LDG.E R5, [R2.64]", "STG.E [R4.64], R9"), [(1, 2, 1)]),  # the address is R4 and R5
        (("LDG.E R7, [R2.64]", "STG.E.128 [R2.64], R4"), [(1, 2, 1)]),  # the value is R4 to R7
        (("LDG.E R4, [R2.64]", "MOV R4, R9", "FADD R8, R4, R5"), []),  # overwritten before any use
        (("LDG.E R4, [R2.64]", "@P0 MOV R4, R9", "FADD R8, R4, R5"), [(1, 3, 1)]),  # perhaps not overwritten
        (("LDG.E R4, [R4.64]", "EXIT"), []),
        (("LDS R4, [R2]", "FADD R8, R4, R5"), []),
    ],
)
def test_first_use_of_a_load_is_the_instruction_that_reads_its_register(lines, pairs):
    found = first_uses(code(*lines))
    assert [(pair.load.line, pair.use.line, pair.in_flight) for pair in found] == pairs


def test_other_kinds_of_loads_are_found_by_their_mnemonic():
    found = first_uses(code("LDS R4, [R2]", "FADD R8, R4, R5"), "LDS")
    assert [(pair.load.line, pair.use.line) for pair in found] == [(1, 2)]


@pytest.mark.parametrize("loads", [1, 4])
def test_unrolled_loop_has_its_loads_in_flight_and_waits_in_the_next_line(loads):
    built = compile_cuda(HALVE.replace("LOADS", str(loads)), filename="halve.cu", options=("-lineinfo",))
    found = first_uses(disassemble(built, "halve"))
    assert max(pair.in_flight for pair in found) == loads
    assert {(pair.load.line, pair.use.line) for pair in found} == {(6, 7)}
    *_, load, use, flying = first_use_table(built, "halve").text.splitlines()
    assert load.split(None, 1) == ["loads", "6: const float v = x[i];"] and flying.split()[-1] == str(loads)
    assert use.split(None, 3) == ["waits,", "in", "FMUL", "7: y[i] = 0.5f * v;"]
