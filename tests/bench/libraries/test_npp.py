"""NPP as a peer: a border that it does not compute is noticed."""

from __future__ import annotations

import numpy as np
import pytest

from climb.bench.libraries.npp import PADDINGS, keeps_border
from climb.bench.references import correlate


@pytest.mark.parametrize("border", PADDINGS)
@pytest.mark.parametrize("shape", [(32, 48), (7, 300), (200, 9)])
@pytest.mark.parametrize("extents", [(3, 3), (1, 5), (5, 1), (11, 11)])
def test_only_the_border_that_was_asked_for_is_kept(border, extents, shape):
    rng = np.random.default_rng(0)
    image, weights = rng.random(shape, np.float32), rng.random(extents, np.float32)
    edges = tuple((extent // 2, extent // 2) for extent in extents)
    of = {
        one: correlate(np.pad(image, edges, mode=mode), weights)[
            edges[0][0] : edges[0][0] + shape[0], edges[1][0] : edges[1][0] + shape[1]
        ].astype(np.float32)
        for one, mode in PADDINGS.items()
    }
    assert {one for one, result in of.items() if keeps_border(image, weights, result, border)} == {border}


@pytest.mark.parametrize("place", [(0, 90), (63, 90), (30, 0), (30, 127)])
def test_one_wrong_pixel_at_any_side_is_noticed(place):
    image, weights = np.ones((64, 128), np.float32), np.ones((3, 3), np.float32)
    result = correlate(np.pad(image, 1), weights)[1:-1, 1:-1].astype(np.float32)
    assert keeps_border(image, weights, result, "zero")
    result[place] += 1
    assert not keeps_border(image, weights, result, "zero")


def test_a_result_with_nan_is_not_kept():
    image, weights = np.ones((8, 8), np.float32), np.ones((3, 3), np.float32)
    assert not keeps_border(image, weights, np.full_like(image, np.nan), "clamp")
