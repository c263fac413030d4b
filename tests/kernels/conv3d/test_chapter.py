"""The chapter on the 3D convolution: exercises tell right from wrong, exhibits do what it says, columns are covered."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tools.thorough import sparse, thorough

from climb import ArgumentError, count_kernel, counters, load_ladder
from climb.bench.checking import verify
from climb.bench.exercise import check, drifted
from climb.bench.libraries.cufft import smooth_lengths
from climb.bench.references import correlate
from climb.bench.transfers import STEPS, transfers, transfers_path
from kernels.conv3d.conv3d import EDGES, Tile
from kernels.conv3d.exercises import exhibit, judge, planes_per_block, stream, tile_width

CHAPTER = Path(__file__).resolve().parents[3] / "book" / "conv3d.ipynb"
CONV = load_ladder("conv3d")


@pytest.mark.skipif(not CHAPTER.exists(), reason="the chapter is not there yet")
def test_the_cell_of_the_exercise_is_its_skeleton():
    assert not drifted(CHAPTER, stream)


def test_the_solution_passes_and_the_skeleton_is_right_and_wasteful():
    assert check(stream.solution, stream).passed
    wrong = [c.wrong for c in check(stream.skeleton, stream).checks]
    assert wrong == [None] * 3 + ["1264 requests"]


@pytest.mark.parametrize(
    "old, new", [("planes + kRadius", "planes"), ("kTaps - 1 - s", "s"), ("s + 1 < kTaps", "s < 0")]
)
def test_planted_mistake_in_the_march_is_found(old: str, new: str):
    assert stream.solution.count(old) == 1
    verdict = check(stream.solution.replace(old, new), stream)
    assert not verdict.passed and any(word in repr(verdict) for word in ("wrong", "never written"))


def test_the_paper_exercise_tells_right_from_wrong():
    assert judge(tile_width, planes_per_block)
    assert not judge(lambda k, percent: tile_width(k, percent) + 1, planes_per_block)
    assert not judge(tile_width, lambda n, tiles, slots: n * tiles // slots)
    assert (tile_width(9, 100) + 8) ** 3 <= 2 * tile_width(9, 100) ** 3


def test_transposed_tile_is_right_and_has_bank_conflicts():
    rng = np.random.default_rng(0)
    cube, taps = (rng.random((edge,) * 3, dtype=np.float32) for edge in (16, 3))
    out = np.zeros_like(cube)
    counted = count_kernel(exhibit("mapping"), "tiled", (2, 2, 2), (512,), [cube, taps, out, np.int32(16), np.int32(3)])
    assert np.abs(out - correlate(cube, taps)).max() < 1e-5
    shared, store = counted.total("shared load"), counted.total("global store")
    assert shared.wavefronts == 4 * shared.requests and store.sectors == 32 * store.requests
    ours = counters(CONV["tiled"], {"n": 16, "k": 3})
    assert ours.total("shared load").wavefronts <= 2 * ours.total("shared load").requests


@pytest.mark.parametrize("k", EDGES)
def test_rows_of_the_tile_are_whole_float4_and_the_window_fits(k: int):
    tile = Tile(k)
    pitch = tile.plane // 4 // (tile.down + k - 1)
    assert pitch % 8 == 4 and pitch >= tile.across + 2 * tile.lead and tile.lead >= k // 2


@pytest.mark.parametrize("k", [1, 2, 4, 8, 13])
def test_unsupported_filter_sizes_are_refused_by_name(k: int):
    with pytest.raises(ArgumentError, match="k may be 3, 5, 7, 9 or 11"):
        CONV["naive"].launches({"n": 8, "k": k})


@pytest.mark.parametrize("at, value", [thorough((0, 0, 0), np.nan), ((2, 1, 0), np.inf), thorough((2, 2, 2), -np.inf)])
@pytest.mark.parametrize("name", sparse(CONV.names))
def test_non_finite_weight_times_zero_padding_is_nan(name: str, at: tuple[int, ...], value: float):
    size = {"n": 4, "k": 3}
    inputs = CONV.inputs(size)
    inputs["weights"][at] = value
    verify(CONV[name], size, inputs=inputs)


@pytest.mark.parametrize("value", [np.nan, np.inf, thorough(-np.inf)])
@pytest.mark.parametrize("plane", [0, *(thorough(plane) for plane in (1, 2, 3, 4)), 5])
def test_karatsuba_spreads_no_value_further_than_the_definition(plane: int, value: float):
    size = {"n": 6, "k": 3}
    inputs = CONV.inputs(size)
    inputs["source"][plane, 2, 3] = value
    verify(CONV["karatsuba"], size, inputs=inputs)


def test_karatsuba_overflows_where_the_sum_does_and_nowhere_else():
    size = {"n": 6, "k": 3}
    inputs = {"source": np.full((6,) * 3, 2.5e38, np.float32), "weights": np.zeros((3,) * 3, np.float32)}
    inputs["weights"][1, 1, 1] = 1.0  # the sum of two planes overflows, their difference would be NaN
    verify(CONV["karatsuba"], size, inputs=inputs)


@pytest.mark.parametrize("name", ["trimmed", "grouped", "karatsuba"])
@pytest.mark.parametrize("n, k", [(n, k) for n in (1, 2, 31, 64, 96, 100, 255, 256, 257, 512) for k in EDGES])
def test_the_blocks_of_a_column_cover_its_planes_once(name: str, n: int, k: int):
    (launch,) = CONV[name].launches({"n": n, "k": k})
    n = -(-n // 2) if name == "karatsuba" else n  # it counts pairs of planes
    planes, whole, rest = (int(a) for a in launch.args[-3:])
    covered: list[int] = []
    for block in range(launch.grid[2]):
        begin = block * planes if block < whole else whole * planes + (block - whole) * rest
        covered += range(begin, min(begin + (planes if block < whole else rest), n))
    assert covered == list(range(n))


def test_lengths_of_a_transform_have_small_factors():
    assert smooth_lengths(516, 3) == [520, 528, 540]
    assert smooth_lengths(1, 2) == [2, 4]


@pytest.mark.skipif(not transfers_path("conv3d").exists(), reason="no transfers are recorded")
def test_the_transfers_are_of_the_recorded_sizes():
    found = transfers("conv3d")
    assert found.gpu == "NVIDIA H200"
    for size in CONV.problem.recorded:
        point = found.point(size)
        assert point.bytes_in == 4 * (size["n"] ** 3 + size["k"] ** 3) and point.bytes_out == 4 * size["n"] ** 3
        assert set(found.at(size)) == set(STEPS) and min(found.at(size).values()) > 0
    with pytest.raises(LookupError, match="no transfers of conv3d at n=1, k=3"):
        found.at({"n": 1, "k": 3})
