"""Register banks: what machine instructions read from them, on instructions written by hand and on the ladder fma."""

from __future__ import annotations

import pytest

from climb import load_ladder
from climb.toolchain import Instruction, compile_cuda
from climb.toolchain.register_banks import BankReads, bank_reads, main_loop


def code(*lines: str) -> list[Instruction]:
    """Machine code from lines such as ``"FFMA R0, R1, R2, R3"``."""
    return [Instruction(16 * at, "", *line.split(" ", 1), line=1, file="") for at, line in enumerate(lines)]


@pytest.mark.parametrize(
    ("lines", "reads", "lost", "three"),
    [
        (["FFMA R0, R2, R4, R6"], 3, 2, 1),
        (["FFMA R0, R2, R4, R7"], 3, 1, 0),
        (["FFMA R0, R2, 0.5, R5"], 2, 0, 0),
        (["FFMA R0, R2, 0.5, R4"], 2, 1, 0),
        (["FFMA R0, R2, c[0x0][0x164], R5"], 2, 0, 0),
        (["FFMA R0, -R2, R2, |R5|"], 2, 0, 0),
        (["FFMA R0, R2, RZ, R5"], 2, 0, 0),
        (["FFMA R1, R2, R4.reuse, R1", "FFMA R3, R6, R4, R3"], 5, 1, 0),
        (["FFMA R1, R2, R4.reuse, R1", "FFMA R3, R4, R6, R3"], 6, 2, 0),
        (["FFMA R1, R2, R4.reuse, R1", "LDS.128 R8, [R40]", "FFMA R3, R6, R4, R3"], 5, 1, 0),
        (["FFMA R1, R2, R4.reuse, R1", "FMUL R8, R5, R7", "FFMA R3, R6, R4, R3"], 6, 2, 0),
        (["FFMA R1, R2, R4.reuse, R1", "FFMA R3, R6, R4, R3", "FFMA R5, R8, R4, R5"], 8, 2, 0),
    ],
    ids=lambda value: " ; ".join(value) if isinstance(value, list) else None,
)
def test_reads_and_lost_cycles_of_a_few_instructions(lines: list[str], reads: int, lost: int, three: int) -> None:
    fmas = sum(line.startswith("FFMA") for line in lines)
    assert bank_reads(code(*lines)) == BankReads(fmas, reads, lost, three)


def test_lost_cycles_explain_the_rate_of_each_rung_of_the_ladder_fma() -> None:
    """An FMA of one_chain waits 4 cycles for its operand anyway; the others take 1 cycle and what the banks cost."""
    ladder, found = load_ladder("fma"), {}
    for rung in ladder.names:
        size = {"n": 1 << 20}
        compiled = ladder[rung].compiled(size)
        found[rung] = bank_reads(main_loop(compiled, ladder[rung].launches(size)[0].kernel))
    assert [found[rung].lost_cycles / found[rung].instructions for rung in ("one_chain", "many_warps")] == [1, 1]
    assert found["immediate"].lost_cycles == 0 and found["immediate"].pipe_share == 1
    assert found["many_chains"].lost_per_instruction < 0.02
    assert not any(reads.three_in_one_bank for reads in found.values())


def test_main_loop_is_the_innermost_with_the_most_instructions() -> None:
    source = r"""
    extern "C" __global__ void loops(float* x, float a, int n, int m)
    {
        float v = x[threadIdx.x];
    #pragma unroll 1
        for (int i = 0; i < n; ++i) v = fmaf(v, a, 1.0f);
    #pragma unroll 1
        for (int i = 0; i < n; ++i) {
            v = v * 3.0f;
    #pragma unroll 1
            for (int j = 0; j < m; j += 4) {
    #pragma unroll
                for (int u = 0; u < 4; ++u) v = fmaf(v, a, 2.0f);
            }
        }
        x[threadIdx.x] = v;
    }
    """
    loop = main_loop(compile_cuda(source, filename="loops.cu"), "loops")
    assert sum(i.mnemonic == "FFMA" for i in loop) == 4
    assert not any(i.mnemonic == "FMUL" for i in loop) and loop[-1].mnemonic == "BRA"


def test_code_without_a_loop_counts_whole() -> None:
    source = 'extern "C" __global__ void once(float* x, float a) { *x = fmaf(*x, a, 1.0f); }'
    reads = bank_reads(main_loop(compile_cuda(source, filename="once.cu"), "once"))
    assert reads.instructions == 1 and bank_reads([]).pipe_share == 1
