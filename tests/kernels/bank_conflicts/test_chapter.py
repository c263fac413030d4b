"""The chapter on bank conflicts: what its text says of exhibits, exercises, widths and hardware, held to be true."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from tools.pending import pending

from climb import block_events, check, count_kernel, counters, hardware_counters, load_ladder, trace, verify
from climb.bench import profiling
from climb.display.access_cost import pick
from climb.emulator import BarrierDivergence, OutOfBounds
from kernels.bank_conflicts.exercises import PITCHES, columns, exhibit, pairs, pitched, row_sums

CHAPTER = Path(__file__).resolve().parents[3] / "book" / "bank-conflicts.ipynb"
SMALL = {"rows": 1024, "cols": 1024}
RUNGS = [name for name in load_ladder("transpose").names if name not in pending("transpose")]

#: Wavefronts of one load of the chapter's kernel ``read_every``, by type and stride, as ncu 2025.3.1 counted them on an
#: NVIDIA H200 (driver 580.159.04) on 2026-11-21: l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum, one warp.
READ_ON_H200 = {
    ("float", 1): 1, ("float", 2): 2, ("float", 3): 1, ("float", 32): 32,
    ("float2", 1): 2, ("float2", 2): 4, ("float2", 3): 2, ("float2", 16): 32,
    ("float4", 1): 4, ("float4", 2): 8, ("float4", 3): 4, ("float4", 8): 32,
}  # fmt: skip


def chapters_kernel(name: str) -> str:
    """The kernel that the chapter holds as the string ``name``."""
    cells = json.loads(CHAPTER.read_text(encoding="utf-8"))["cells"]
    text = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    return re.search(rf'^{name} = r"""(.*?)"""', text, re.MULTILINE | re.DOTALL)[1]


@pytest.mark.parametrize(("type_name", "stride"), READ_ON_H200)
def test_the_emulator_counts_wide_loads_as_the_hardware_does(type_name: str, stride: int) -> None:
    kernel = f"read_every<{type_name}, {stride}>"
    counted = count_kernel(chapters_kernel("read_every"), kernel, (1,), (32,), [np.zeros(128, np.float32)])
    assert counted.total("shared load").wavefronts == READ_ON_H200[type_name, stride]


@pytest.mark.parametrize("rung", RUNGS)
def test_the_emulator_counts_the_transpose_as_the_hardware_does(rung: str) -> None:
    """Sectors exactly; the hardware now and then adds a wavefront when warps compete for the pipe."""
    counted = counters(load_ladder("transpose")[rung], SMALL)
    hardware = hardware_counters("transpose").at(rung, SMALL)
    assert counted.total("global load").sectors == hardware["load_sectors"]
    assert counted.total("global store").sectors == hardware["store_sectors"]
    wavefronts = counted.total("shared load").wavefronts
    assert wavefronts <= hardware["shared_load_wavefronts"] <= wavefronts * 1.001


@pytest.mark.parametrize("ladder", [load_ladder("transpose"), pitched], ids=lambda ladder: ladder.name)
def test_the_hardware_counters_are_there_and_fresh(ladder) -> None:
    known = hardware_counters(ladder)
    for rung, size in profiling.cases(ladder):
        assert rung.name in pending(ladder.name) or known.at(rung.name, size)["nanoseconds"] > 0


@pytest.mark.parametrize("size", pitched.problem.check, ids=lambda size: f"pitch {size['pitch']}")
def test_a_tile_of_any_width_transposes(size: dict[str, int]) -> None:
    verify(pitched["pitched"], size)


@pytest.mark.parametrize("pitch", PITCHES)
def test_as_many_lanes_meet_in_a_bank_as_the_width_says(pitch: int) -> None:
    counted = counters(pitched["pitched"], {"rows": 64, "cols": 64, "pitch": pitch}).total("shared load")
    assert counted.wavefronts_per_request == np.gcd(pitch, 32)


def test_no_warp_of_the_vectorised_transpose_has_a_conflict() -> None:
    """The formula of the text, for all 8 warps and all accesses, against the addresses of the emulator."""
    rung = load_ladder("transpose")["vectorised"]
    lane = np.arange(32)
    for warp in range(8):
        seen = trace(rung, {"rows": 64, "cols": 64}, warp=warp)
        quad, line = (32 * warp + lane) % 16, (32 * warp + lane) // 16
        for i in range(4):
            for kind, c, q in (("shared store", quad * 4 + i, line), ("shared load", line + 16 * i, quad)):
                slot = c * 16 + (q ^ (c // 4 % 8))
                assert np.array_equal(pick(seen, kind, i).addresses, 16 * slot)
                assert all(len(set(quarter)) == 8 for quarter in (slot % 8).reshape(4, 8))


@pytest.mark.parametrize(
    ("rung", "most"), [("aligned_stores", 4), ("reordered", 5)], ids=["aligned_stores", "reordered"]
)
def test_stores_of_a_warp_fill_whole_sectors_only_if_they_are_aligned(rung: str, most: int) -> None:
    """The sectors at both ends of a row of the target are shared with other rows."""
    size = {"rows": 127, "cols": 131}
    ends = {byte // 32 for col in range(131) for byte in (4 * 127 * col, 4 * 127 * (col + 1) - 4)}
    seen, parts = 0, set()
    for event in block_events(load_ladder("transpose")[rung], size, block=None, kinds=["global store"]):
        warps = event.blocks * 64 + event.threads // 32
        for warp in np.unique(warps):
            sectors, floats = np.unique(event.places[warps == warp] // 32, return_counts=True)
            seen = max(seen, len(sectors))
            parts |= set(sectors[floats < 8].tolist())
    assert seen == most
    assert (parts <= ends) == (rung == "aligned_stores")


def run_square(rows: int, cols: int) -> int:
    """The number of elements that the exhibit gets wrong."""
    matrix = np.random.default_rng(0).random((rows, cols), dtype=np.float32)
    turned = np.full((cols, rows), -1, np.float32)
    count_kernel(exhibit("square"), "transpose_square", (cols // 32, rows // 32), (32, 8), [matrix, turned])
    return int(np.count_nonzero(turned != matrix.T))


def test_the_square_transpose_is_right_for_square_matrices_alone() -> None:
    assert run_square(64, 64) == 0
    with pytest.raises(OutOfBounds, match=r"target\[\(row \+ j\) \* width \+ col\]"):
        run_square(64, 96)


def test_the_square_transpose_is_wrong_in_silence_for_a_tall_matrix() -> None:
    assert run_square(96, 64) > 6000


def test_the_early_return_is_a_barrier_that_not_all_threads_reach() -> None:
    def run(cols: int) -> bool:
        matrix = np.random.default_rng(0).random((64, cols), dtype=np.float32)
        turned = np.full((cols, 64), -1, np.float32)
        size = [np.int32(64), np.int32(cols)]
        count_kernel(exhibit("early"), "transpose_early", (1, 2), (32, 8), [matrix, turned, *size])
        return bool((turned == matrix.T).all())

    assert run(32), "without an edge the exhibit is right"
    with pytest.raises(BarrierDivergence, match=r"__syncthreads\(\)"):
        run(24)


@pytest.mark.parametrize("width", range(32, 41))
def test_odd_widths_solve_the_first_exercise_and_no_others(width: int) -> None:
    mine = columns.solution.replace("kPitch = kCols + 1;", f"kPitch = {width};")
    assert bool(check(mine, columns)) == (width % 2 == 1)


def test_every_second_row_is_mended_by_no_width_but_by_a_swizzle() -> None:
    lane = np.arange(32)
    least = {p: int(np.bincount(2 * lane * p % 32).max()) for p in range(32, 64)}
    assert min(least.values()) == least[33] == 2 and least[32] == least[48] == 32
    for y in (2 * lane, 2 * lane + 1):
        assert len(set((7 ^ (y // 2)) % 32)) == 32


@pytest.mark.parametrize(("other", "solves"), [("x ^ (y % 16)", True), ("x ^ (y % 8)", False), ("(x + y) % 32", True)])
def test_four_bits_solve_the_second_exercise(other: str, solves: bool) -> None:
    assert bool(check(pairs.skeleton.replace("return x;", f"return {other};"), pairs)) == solves


@pytest.mark.parametrize(("other", "solves"), [("j ^ lane", True), ("(j + 2 * lane) % kTile", False)])
def test_another_start_or_order_solves_the_third_exercise(other: str, solves: bool) -> None:
    assert bool(check(row_sums.skeleton.replace("tile[lane][j]", f"tile[lane][{other}]"), row_sums)) == solves
