"""The SASS interpreter computes the PTX's results, and its counts are Nsight Compute's."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from tools.thorough import sparse

from climb import count_kernel, load_ladder
from climb.toolchain import Instruction, compile_cuda
from climb.validation.agreement import code_sha256, record
from climb.validation.sass_interpreter import SassCounts, UnsupportedSass, run_sass, sass_counts
from climb.validation.sass_interpreter.operands import operand, split
from climb.validation.sass_interpreter.warps import Program

#: Rungs that the interpreter supports, besides those of divergence: their results are compared with the reference,
#: their instructions with Nsight Compute's counts in the record of the agreement.
READ = (
    "copy unrolled", "saxpy four_scalars", "conv2d naive", "conv3d untiled", "matmul coalesced", "transpose padded",
    "stencil1d tiled",
)  # fmt: skip
#: The rungs of these with a BSYNC at which lanes of several branches wait.
CONTESTED = ("conv3d untiled",)


def machine(source: str, kernel: str, grid: int, block: int, *args: np.ndarray | np.generic) -> SassCounts:
    compiled = compile_cuda(source, filename="kernel.cu", name_expressions=(kernel,))
    return run_sass(compiled, kernel, (grid,), (block,), args)


@cache
def point(ladder: str, rung: str) -> dict:
    (found,) = (p for p in record().rungs if (p["ladder"], p["rung"]) == (ladder, rung))
    return found


@pytest.mark.parametrize("name", sparse(READ))
def test_rungs_execute_as_many_instructions_as_the_hardware_counted(name: str) -> None:
    ladder, rung = load_ladder(name.split()[0]), name.split()[1]
    measured = point(ladder.name, rung)
    size = measured["size"]
    compiled = ladder[rung].compiled(size)
    (launch,) = ladder[rung].launches(size)
    if code_sha256(compiled, launch, ladder.inputs(size)) != measured["code_sha256"]:
        assert compiled.nvrtc_version != record().nvrtc, "counted of another kernel"
        pytest.skip("another compiler than the record's")
    done = sass_counts(ladder[rung], size)  # raises where a result is wrong
    for counts in measured["counts"]:
        assert done.warp_instructions == counts["smsp__inst_executed.sum"]
        ratio = counts["smsp__thread_inst_executed_per_inst_executed.ratio"]
        # The tool prints two decimals.
        assert done.contested or 32 * done.lane_efficiency == pytest.approx(ratio, abs=0.0051)
    assert bool(done.contested) == (name in CONTESTED)


LEAVES = """
__global__ void leaves(const int* steps, int* out)
{
    const int lane = threadIdx.x;
    if (steps[lane] < 0) {
        return;
    }
    out[lane] = __ballot_sync(__activemask(), steps[lane] > 1);
}
"""


def test_lanes_that_have_left_execute_nothing() -> None:
    steps, out = np.array([-1, 0, 1, 2] * 8, np.int32), np.zeros(32, np.int32)
    try:
        done = machine(LEAVES, "leaves", 1, 32, steps, out)
    except UnsupportedSass as error:
        pytest.skip(f"this compiler's code is not read: {error}")
    assert out.tolist() == [0 if n < 0 else -0x77777778 for n in steps]
    last = done.instructions[-1]
    assert (last.warps, last.threads) == (1, 24)


def test_last_warp_of_a_short_block_has_only_its_lanes() -> None:
    source = "__global__ void one(int* out) { out[blockIdx.x * blockDim.x + threadIdx.x] = blockIdx.x; }"
    out = np.full(80, -1, np.int32)
    done = machine(source, "one", 2, 40, out)
    assert out.tolist() == [0] * 40 + [1] * 40
    assert all(each.warps == 4 and each.threads == each.on == 80 for each in done.instructions)


SHUFFLES = """
__global__ void shuffles(const int* in, int* out)
{
    __shared__ int turned[64];
    const int i = threadIdx.x;
    const int v = in[i];
    turned[63 - i] = v;
    __syncthreads();
    out[i] = __shfl_down_sync(~0u, v, 3);
    out[64 + i] = __shfl_up_sync(~0u, v, 5, 16);
    out[128 + i] = __shfl_xor_sync(~0u, v, 9);
    out[192 + i] = __shfl_sync(~0u, v, in[i] & 7, 8);
    out[256 + i] = turned[i];
}
"""


def test_shuffles_and_shared_memory_agree_with_the_emulator() -> None:
    given = np.random.default_rng(0).permutation(64).astype(np.int32)
    out, expected = np.zeros(320, np.int32), np.zeros(320, np.int32)
    machine(SHUFFLES, "shuffles", 1, 64, given, out)
    count_kernel(SHUFFLES, "shuffles", (1,), (64,), [given, expected])
    assert np.array_equal(out, expected) and len(set(out.tolist())) > 32


def test_access_outside_of_every_array_is_an_error() -> None:
    source = "__global__ void over(int* out) { out[threadIdx.x] = 1; }"
    with pytest.raises(IndexError, match="in no array"):
        machine(source, "over", 1, 32, np.zeros(31, np.int32))


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("__global__ void f(double* x) { x[threadIdx.x] *= 1.5; }", "the instruction DMUL"),
        ("__global__ void f(float* x) { x[threadIdx.x] = sinf(x[0]); }", "the instruction"),
    ],
)
def test_unsupported_instruction_is_refused_by_name(source: str, what: str) -> None:
    with pytest.raises(UnsupportedSass, match=what):
        machine(source, "f", 1, 32, np.zeros(32, np.float64))


def test_unknown_operand_or_argument_is_refused() -> None:
    code = (Instruction(0, "", "FADD.FTZ.SAT", "R0, R1, R2", 1, "a.cu"),)
    assert Program.of(code, {}).steps[0].modifiers == ("FTZ", "SAT")
    with pytest.raises(UnsupportedSass, match="the operand B0"):
        split("R1, B0-")
    with pytest.raises(TypeError, match="list"):
        machine("__global__ void f(int* x) { *x = 1; }", "f", 1, 32, [1])  # type: ignore[arg-type]


def test_operands_are_parsed_with_their_modifiers() -> None:
    assert operand("-R3.reuse") == operand("-R3.reuse") and operand("-R3.reuse").negative
    assert operand("~UR2").inverted and operand("!P0").inverted and operand("PT").index == -1
    assert operand("|R4|").absolute and operand("-|R4|").negative
    assert operand("c[0x0][0x210]").text == "0x210"
    assert [one.kind for one in split("desc[UR4][R6.64+0x10], R7")] == ["[", "R"]
