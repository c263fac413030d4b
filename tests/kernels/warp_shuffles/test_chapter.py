"""The chapter on warp shuffles: its exercises tell right from wrong, and its exhibits fail in the way that it says."""

from __future__ import annotations

import numpy as np
import pytest
from tools.pending import pending
from tools.thorough import thorough

from climb import ArgumentError, check, count_kernel, counters, hardware_counters, load_ladder, opcodes, verify
from climb.bench.problem import ceil_div
from climb.bench.repeats import repeated
from climb.emulator.errors import Race, WarpMismatch
from climb.toolchain import compile_cuda
from kernels.warp_shuffles.exercises import argmax, block_max, exhibit, ladder, scan

REDUCTION = load_ladder("reduction")


def test_the_block_maximum_is_right_and_merely_slow() -> None:
    verdict = check(block_max.skeleton, block_max)
    assert [c.wrong is None for c in verdict.checks] == [True] * len(block_max.sizes) + [False]


@pytest.mark.parametrize(
    ("exercise", "change", "says"),
    [
        (block_max, ("offset = kWarp / 2", "offset = kWarp / 4"), "maxima are wrong"),
        (block_max, ("i < n ? source[i] : kLowest", "i < n ? source[i] : 0.0f"), "maxima are wrong"),
        (argmax, (" && there < at", ""), "index are wrong"),
        (argmax, ("            at = there;\n", ""), "index are wrong"),
        (scan, ("lane >= offset", "lane > offset"), "sums are wrong"),
        (scan, ("if (i < n) {", "if (i <= n) {"), "out of bounds"),
    ],
)
def test_planted_mistake_in_a_solution_is_found(exercise, change: tuple[str, str], says: str) -> None:
    assert exercise.solution.count(change[0]) == 1
    assert says in repr(check(exercise.solution.replace(*change), exercise))


def test_scan_with_one_of_two_mistakes_mended_still_fails() -> None:
    shuffle = "__shfl_up_sync(kAllLanes, value, offset);\n"
    guarded = scan.skeleton.replace(
        f"value += {shuffle}", f"const float left = {shuffle}        if (lane >= offset) {{ value += left; }}\n"
    )
    verdict = check(guarded, scan)
    assert verdict.checks[0].wrong is None and "warp mismatch" in verdict.checks[1].wrong


@pytest.mark.parametrize(("word", "total"), [("", 28), ("volatile ", 256)])
def test_the_unrolled_last_warp_returns_28(word: str, total: float) -> None:
    source = exhibit("last_warp").replace("__shared__ float", f"__shared__ {word}float")
    sums = np.full(4, np.nan, np.float32)
    arguments = [np.ones(1024, np.float32), sums]
    count_kernel(source, "sum_last_warp", (4,), (256,), arguments, checks=())
    assert (sums == total).all()
    with pytest.raises(Race, match="lanes run independently"):
        count_kernel(source, "sum_last_warp", (4,), (256,), arguments)


@pytest.mark.parametrize(("barrier", "error"), [("__syncwarp();", Race), ("", None)])
def test_last_warp_is_right_only_with_syncwarps_between_read_and_write(barrier: str, error: type | None) -> None:
    """Within one line lane 0 reads what lane 16 writes; only reading, waiting and writing apart are in order."""
    lines = {f"partial[t] += partial[t + {s}];": s for s in (32, 16, 8, 4, 2, 1)}
    source = exhibit("last_warp")
    for line, stride in lines.items():
        apart = f"{{ const float v = partial[t + {stride}]; __syncwarp(); partial[t] += v; __syncwarp(); }}"
        source = source.replace(line, line + barrier if barrier else apart)
    sums = np.full(4, np.nan, np.float32)
    arguments = [np.ones(1024, np.float32), sums]
    if error is None:
        count_kernel(source, "sum_last_warp", (4,), (256,), arguments)
        assert (sums == 256).all()
        return
    with pytest.raises(error):
        count_kernel(source, "sum_last_warp", (4,), (256,), arguments)


def test_a_total_set_to_zero_by_one_block_is_a_race() -> None:
    arrays = [np.ones(1024, np.float32), np.full(1, 7, np.float32)]
    with pytest.raises(Race, match="race in global memory"):
        count_kernel(exhibit("zeroed"), "sum_zeroed", (4,), (256,), arrays, checks=("global",))


@pytest.mark.parametrize("n", [1, 31, 33, 1000])
def test_an_early_return_before_a_shuffle_is_found(n: int) -> None:
    arrays = [np.ones(1024, np.float32), np.zeros(1, np.float32)]
    with pytest.raises(WarpMismatch, match="has left the kernel"):
        count_kernel(exhibit("early_return"), "sum_early_return", (4,), (256,), [*arrays, np.int32(n)])


def test_the_tree_costs_what_the_table_of_the_prediction_says() -> None:
    """47 and 12 combinations of a warp and a step; two shared loads in each, one more per block; equal wavefronts."""
    counted = {name: counters(REDUCTION[name], {"n": 256}).total("shared load") for name in REDUCTION.names[:3]}
    assert [counted[name].requests for name in counted] == [2 * 47 + 1, 2 * 12 + 1, 2 * 12 + 1]
    assert [counted[name].wavefronts for name in counted] == [2 * 47 + 1, 2 * 47 + 1, 2 * 12 + 1]


@pytest.mark.parametrize("rung", list(ladder), ids=lambda rung: rung.name)
def test_one_pass_leaves_a_sum_per_chunk(rung) -> None:
    done = 0
    for size in ladder.problem.check:
        try:
            verify(rung, size)
        except ArgumentError:
            continue
        done += 1
        assert rung.launches(size)[0].grid == (ceil_div(size["n"], size["chunk"]),)
    assert done == 3


def test_only_atomics_differ_from_launch_to_launch() -> None:
    repeats = repeated("reduction")
    counted = [name for name in REDUCTION.names if name not in pending("reduction")]
    differ = [name for name in counted if len(repeats.of(name)) > 1]
    assert differ == ["atomics"]
    for name in counted:
        assert sum(repeats.of(name).values()) == repeats.launches
        assert all(abs(total / repeats.reference - 1) < 2e-6 for total in repeats.of(name))


def test_packing_costs_the_wavefronts_that_the_conflicts_say() -> None:
    """In the hardware a warp takes part in every step; only the conflicts differ, by 3 x 35 wavefronts per block."""
    profile = hardware_counters(ladder)
    wavefronts = {}
    for name in REDUCTION.names[:3]:
        at = profile.at(name, {"n": 1 << 24, "chunk": 256})
        wavefronts[name] = at["l1_data_busy"] / 100 * at["cycles"] * 132 / (1 << 16)
    assert wavefronts["non_divergent"] - wavefronts["interleaved"] == pytest.approx(105, abs=6)
    assert wavefronts["sequential"] == pytest.approx(wavefronts["interleaved"], abs=6)


@pytest.mark.parametrize("arch", ["sm_75", "sm_90", *map(thorough, ("sm_80", "sm_86", "sm_89", "sm_100", "sm_120"))])
def test_steps_of_a_tree_of_known_size_are_predicates_on_every_architecture(arch: str) -> None:
    """The one branch that some keep is the guard of the load."""
    rung = REDUCTION["interleaved"]
    kernel = rung.launches(REDUCTION.problem.headline[0])[0].kernel
    compiled = compile_cuda(
        rung.path.read_text(), filename=rung.path.name, options=("-std=c++17", *rung.rung.options),
        name_expressions=[kernel], include_dirs=[rung.path.parent], arch=arch, whole=True,
    )  # fmt: skip
    code = opcodes(compiled, kernel)
    additions = [opcode for opcode in code if "FADD" in opcode]
    assert len(additions) == 8 and all(opcode.startswith("@") for opcode in additions)
    assert sum("BRA" in opcode for opcode in code[: code.index("EXIT")]) <= 1
