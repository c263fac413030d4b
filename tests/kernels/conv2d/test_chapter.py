"""The chapter on the 2D convolution: its exercises tell right from wrong, and its exhibits fail in the way it says."""

from __future__ import annotations

import numpy as np
import pytest

from climb import check, count_kernel, counters, load_ladder
from climb.bench.references import correlate
from climb.emulator.errors import Uninitialised
from kernels.conv2d.exercises import column, exhibit, lanes, mirror


@pytest.mark.parametrize(
    ("exercise", "change", "says"),
    [
        (mirror, ("n - 1 - abs(n - 1 - abs(i))", "n - abs(n - abs(i))"), "out of bounds"),
        (mirror, ("n - 1 - abs(n - 1 - abs(i))", "min(abs(i), n - 1)"), "result are wrong"),
        (lanes, ("lane < j ? beyond : own", "own"), "result are wrong"),
        (lanes, ("lane < kTaps - 1 && ", "lane < kTaps - 2 && "), "result are wrong"),
        (lanes, ("further < cols ?", "further <= cols ?"), "out of bounds"),
        (column, ("y <= h + 1", "y <= h"), "result are wrong"),
        (column, ("y <= kHigh; ++y", "y < kHigh; ++y"), "result are wrong"),
    ],
)
def test_planted_mistake_in_a_solution_is_found(exercise, change: tuple[str, str], says: str) -> None:
    assert exercise.solution.count(change[0]) == 1
    assert says in repr(check(exercise.solution.replace(*change), exercise))


def test_loading_every_row_three_times_is_right_and_wasteful() -> None:
    verdict = check(column.skeleton, column)
    assert [c.wrong is None for c in verdict.checks] == [True] * len(column.sizes) + [False]


def test_a_quotient_rounded_up_mends_the_tile() -> None:
    pixels, nine = _data()
    arguments = [pixels, nine, np.zeros_like(pixels), np.int32(128), np.int32(128)]
    with pytest.raises(Uninitialised, match="which nothing has written"):
        count_kernel(exhibit("halo"), "convolve", (4, 4), (32, 32), arguments)
    mended = exhibit("halo").replace("kTile / kBlock", "(kTile + kBlock - 1) / kBlock")
    count_kernel(mended, "convolve", (4, 4), (32, 32), arguments)
    assert np.allclose(arguments[2], correlate(pixels, nine), rtol=1e-6)


def test_one_output_in_eight_has_a_tap_outside_of_what_is_loaded() -> None:
    """Of 32 x 32 outputs those whose 3 x 3 pixels lie in the 32 x 32 that are loaded: 30 x 30."""
    pixels, nine = _data()
    out = np.zeros_like(pixels)
    arguments = [pixels, nine, out, np.int32(128), np.int32(128)]
    count_kernel(exhibit("halo"), "convolve", (4, 4), (32, 32), arguments, checks=())
    wrong = ~np.isclose(out, correlate(pixels, nine), rtol=1e-5)
    inside = np.arange(128) % 32 < 30
    assert not wrong[np.ix_(inside, inside)].any()
    assert 0.1 < wrong.mean() <= 1 - (30 / 32) ** 2


def test_second_halo_pass_loads_what_four_passes_load() -> None:
    ladder = load_ladder("conv2d")
    for k, left in ((3, 132), (11, 740)):
        size = {"rows": 96, "cols": 96, "k": k, "k_cols": k, "border": "clamp"}
        four, two = (counters(ladder[name], size) for name in ("tiled", "halo_second_pass"))
        assert four.total("global load").lanes == two.total("global load").lanes == 9 * (32**2 + left)
        assert two.total("global load").requests < four.total("global load").requests


def _data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(4)
    return rng.random((128, 128), dtype=np.float32), rng.random((3, 3), dtype=np.float32)


#: Lets the published shuffle use the pair that lane 31 loads, and load it from the row of the filter.
USED = (
    "value = __shfl_down_sync(kAll, value, 1);\n        next.x = __shfl_down_sync(kAll, value, 1);",
    "value = __shfl_down_sync(kAll, value, 1);\n        if (threadIdx.x == 31) value = next.x;\n"
    "        next.x = __shfl_down_sync(kAll, value, 1);\n        if (threadIdx.x == 31) next.x = next.y;",
)
OF_ITS_ROW = ("reinterpret_cast<const float2*>(tile)[32]", "*reinterpret_cast<const float2*>(row + 32)")


@pytest.mark.parametrize(
    ("edits", "wide_loads", "wrong_columns"),
    [((), 0, [30, 31]), ((USED,), 192, [30, 31]), ((USED, OF_ITS_ROW), 192, [])],
)
def test_lane_31_loads_a_pair_of_no_use_until_it_is_used_and_from_its_own_row(edits, wide_loads, wrong_columns) -> None:
    text = exhibit("lane31")
    for old, new in edits:
        assert text.count(old) == 1
        text = text.replace(old, new)
    image, nine = np.random.default_rng(1).random((64, 32), dtype=np.float32), _data()[1]
    out = np.zeros_like(image)
    counted = count_kernel(text, "convolve", (1, 2), (32, 32), [image, nine, out, np.int32(64), np.int32(32)])
    wrong = abs(out - correlate(image, nine)) > 1e-5
    # Beyond the only block's last column there are zeros, so what lane 31 lacks is right by chance.
    assert sum(line.requests for line in counted.lines if (line.kind, line.width) == ("shared load", 8)) == wide_loads
    assert np.flatnonzero(wrong.any(axis=0)).tolist() == wrong_columns
