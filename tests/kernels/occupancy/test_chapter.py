"""The chapter on occupancy: exercises, exhibit and what its text says of them, held to be true."""

from __future__ import annotations

import numpy as np
import pytest
from tools.pending import pending

from climb import check, count_kernel, load_ladder, occupancy_of, occupancy_profile
from climb.toolchain import compile_cuda
from kernels.occupancy.exercises import exhibit, loads_in_a_row, scale, smooth

EXERCISES = (smooth, scale)


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.name)
def test_a_solution_passes_and_the_skeleton_does_not(exercise) -> None:
    assert check(exercise.solution, exercise)
    verdict = check(exercise.skeleton, exercise)
    assert not verdict
    assert [c.wrong for c in verdict.checks][:-1] == [None] * len(exercise.sizes)  # right, but not yet as asked


def test_second_exercise_accepts_the_other_solution() -> None:
    """``__restrict__`` on both arrays, as the solution's text says."""
    promised = scale.skeleton.replace("const float* source, float* target", "const float* __restrict__ source, "
                                      "float* __restrict__ target")  # fmt: skip
    assert promised != scale.skeleton
    assert check(promised, scale)


@pytest.mark.parametrize(
    ("exercise", "old", "new", "says"),
    [
        (smooth, "before[max(i - 1, 0)]", "before[max(i - 2, 0)]", "are wrong"),
        (smooth, "__syncthreads();", "", ""),
        (smooth, "min(kPiece, n - first)", "kPiece", "out of bounds"),
        (scale, "factor * value[e]", "value[e]", "are wrong"),
        (scale, "i += kGroup", "i += 2 * kGroup", "never written"),
    ],
)
def test_a_mistake_in_a_solution_is_found(exercise, old: str, new: str, says: str) -> None:
    assert old in exercise.solution
    verdict = check(exercise.solution.replace(old, new), exercise)
    assert not verdict
    assert says in repr(verdict)


def test_solution_with_too_much_shared_memory_is_told_how_many_blocks_fit() -> None:
    """Another element of shared memory than the exercise allows."""
    wide = smooth.solution.replace("before[kPiece];", "before[7 * kPiece / 4];")
    assert "there is room for" in repr(check(wide, smooth))


def test_loads_in_a_row_are_counted_between_stores() -> None:
    source = """
    __global__ void three(const float* from, float* to) {
        to[0] = from[0];
        float a = from[1], b = from[2], c = from[3];
        to[1] = a; to[2] = b; to[3] = c;
    }"""
    compiled = compile_cuda(source, filename="three.cu", name_expressions=("three",))
    assert loads_in_a_row(compiled, "three") == 3


def test_forty_blocks_copy_forty_blocks() -> None:
    numbers, copied = np.arange(50_000, dtype=np.float32), np.full(50_000, np.nan, np.float32)
    count_kernel(exhibit("one_each"), "one_each", (40,), (1024,), [numbers, copied, np.int32(numbers.size)])
    assert np.array_equal(copied[:40960], numbers[:40960])
    assert np.isnan(copied[40960:]).all()


def test_paper_answer_for_a_t4_is_forty() -> None:
    assert 40 * occupancy_of(16, 0, 1024, "sm_75").blocks == 40
    assert 132 * occupancy_of(16, 0, 1024, "sm_90").blocks == 264


@pytest.mark.parametrize("name", ["occupancy", "occupancy_fma"])
def test_every_recorded_size_was_profiled(name: str) -> None:
    profile, ladder = occupancy_profile(), load_ladder(name)
    for size in ladder.problem.recorded:
        for rung in ladder:
            assert rung.name in pending(name) or profile.at(name, rung.name, **size).counts["nanoseconds"] > 0


def test_size_without_a_profile_is_refused_by_name() -> None:
    with pytest.raises(LookupError, match="occupancy one_float at n=5"):
        occupancy_profile().at("occupancy", "one_float", n=5)
