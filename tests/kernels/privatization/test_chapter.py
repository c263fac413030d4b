"""The chapter on privatization: its exercises tell right from wrong, and its exhibits do what it says of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tools.pending import pending
from tools.thorough import thorough

from climb import check, count_kernel, counters, hardware_counters, load_ladder, opcodes
from climb.bench import profiling
from climb.bench.exercise import drifted
from climb.emulator import EmulatorError
from climb.toolchain import compile_cuda
from kernels.privatization.exercises import HERE, exhibit, merge, votes

CHAPTER = Path(__file__).resolve().parents[3] / "book" / "privatization.ipynb"


@pytest.mark.parametrize("exercise", [merge, votes], ids=lambda exercise: exercise.name)
def test_a_solution_passes_and_the_skeleton_is_right_but_slow(exercise) -> None:
    assert check(exercise.solution, exercise)
    verdict = check(exercise.skeleton, exercise)
    assert [c.wrong is None for c in verdict.checks] == [True] * len(exercise.sizes) + [False]


@pytest.mark.parametrize("exercise", [merge, votes], ids=lambda exercise: exercise.name)
def test_the_chapter_shows_the_skeleton(exercise) -> None:
    assert not drifted(CHAPTER, exercise)


@pytest.mark.parametrize(
    ("exercise", "change", "says"),
    [
        (merge, ("(bin + step) % kCopies", "bin % kCopies"), "counts are wrong"),
        (merge, ("(bin + step) % kCopies", "(2 * bin + step) % kCopies"), "2 wavefronts per request"),
        (merge, ("        copies[word] = 0;", "        copies[word] = word == 77;"), "counts are wrong"),
        (votes, ("total - ones", "total"), "counts are wrong"),
        (votes, ("inside && values", "values"), "out of bounds"),
        (votes, ("    if (threadIdx.x % kWarpSize == 0) {", "    {"), "counts are wrong"),
        (votes, (">= kHalf", "> kHalf"), "counts are wrong"),
    ],
)
def test_planted_mistake_in_an_exercise_is_found(exercise, change: tuple[str, str], says: str) -> None:
    assert exercise.solution.count(change[0]) == 1
    assert says in repr(check(exercise.solution.replace(*change), exercise))


@pytest.mark.parametrize("kind", ["uniform", "constant", "zipf"])
def test_the_hardware_counted_the_wavefronts_that_the_emulator_counts(kind: str) -> None:
    """With one value per thread nothing of a request is replayed, so the two must agree exactly."""
    size = {"n": 1 << 18, "bins": 256, "data": kind}
    counted = counters(load_ladder("histogram")["shared"], size).total("shared atomic")
    on_gpu = hardware_counters("histogram").at("shared", size)
    assert (counted.requests, counted.wavefronts) == (on_gpu["shared_atomics"], on_gpu["shared_atomic_wavefronts"])


def test_the_hardware_counters_are_fresh() -> None:
    known = hardware_counters("histogram")
    for rung, size in profiling.cases(load_ladder("histogram")):
        assert rung.name in pending("histogram") or known.at(rung.name, size)["cycles"] > 0


@pytest.mark.parametrize("copies", [1, 2, 4, 8, 16, 32])
def test_the_wavefronts_of_interleaved_copies_are_those_of_the_formula(copies: int) -> None:
    """Lane l adds to word ``value * copies + l % copies``; a bank delivers one of its different words at a time."""
    size = {"n": 1 << 16, "bins": 1024}
    ladder = load_ladder("histogram_bins")
    counted = counters(ladder[f"copies_{copies}"], size).total("shared atomic")
    # A thread loads 8 neighbouring values and adds them one after the other: lanes are on every eighth value.
    values = ladder.inputs(size)["values"].astype(int).reshape(-1, 32, 8).swapaxes(1, 2).reshape(-1, 32)
    words = values * copies + np.arange(32) % copies
    expected = sum(max(np.bincount(np.unique(row) % 32)) for row in words)
    assert counted.wavefronts == expected


def test_interleaved_copies_merge_only_the_bins_that_hold_values() -> None:
    """All values are equal, so the one block has one bin to add to the result."""
    size = {"n": 1000, "bins": 256, "data": "constant"}
    rung = load_ladder("histogram")["per_lane"]
    (launch,) = [each for each in rung.launches(size) if "per_lane" in each.kernel]
    assert counters(rung, size).total("global atomic").lanes == launch.grid[0] == 1


def test_the_racing_histogram_is_right_on_different_values_only() -> None:
    def count(values: np.ndarray) -> int:
        counts = np.zeros(256, np.uint32)
        count_kernel(exhibit("racing"), "histogram_racing", (1,), (256,), [values, counts, np.int32(values.size)])
        return int(counts.sum())

    assert count(np.arange(256, dtype=np.uint8)) == 256
    with pytest.raises(EmulatorError, match="race in shared memory"):
        count(np.zeros(256, np.uint8))


def test_every_file_of_the_chapter_is_used() -> None:
    used = {f"{e.name}{end}" for e in (merge, votes) for end in (".cu", "_solution.cu")}
    assert {path.name for path in HERE.glob("*.cu")} == used
    shown = {f"{name}.cu" for name in ("racing", "local", "blocked")}
    assert {path.name for path in (HERE.parent / "exhibits").glob("*.cu")} == shown


@pytest.mark.parametrize("arch", ["sm_75", "sm_90", *map(thorough, ("sm_80", "sm_86", "sm_89", "sm_100", "sm_120"))])
def test_64_bit_addition_in_shared_memory_is_a_loop_on_every_architecture(arch: str) -> None:
    source = """
extern "C" __global__ void count(unsigned long long* counts, const int* bins)
{
    __shared__ unsigned long long own[32];
    own[threadIdx.x] = 0;
    __syncthreads();  // all counts are zero before any is raised
    atomicAdd(&own[bins[threadIdx.x] % 32], 1ull);
    __syncthreads();  // all additions are done before a count is read
    counts[threadIdx.x] = own[threadIdx.x];
}
"""
    code = opcodes(compile_cuda(source, filename="count.cu", arch=arch, whole=True), "count", "ATOMS")
    assert code and all(".CAST.SPIN" in opcode for opcode in code)
    narrow = source.replace("unsigned long long", "unsigned").replace("1ull", "1u")
    code = opcodes(compile_cuda(narrow, filename="count.cu", arch=arch, whole=True), "count", "ATOMS")
    assert code and not any(".CAST.SPIN" in opcode for opcode in code)
