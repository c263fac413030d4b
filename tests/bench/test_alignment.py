"""Measured arrays begin on the boundary: one that does is kept, another is copied. CuPy's stand-in takes its place."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from climb.bench.alignment import BOUNDARY, aligned
from climb.bench.cuda import cp


@pytest.fixture(autouse=True)
def cupy(monkeypatch):
    """The module that kernels run with: CuPy or its stand-in."""
    monkeypatch.setitem(sys.modules, "cupy", cp)


def at_offset(offset: int, count: int):
    """An array of ``count`` floats that begins ``offset`` bytes past the boundary."""
    room = cp.zeros(2 * BOUNDARY + 4 * count, dtype=cp.uint8)
    start = -room.data.ptr % BOUNDARY + offset
    return room[start : start + 4 * count].view(cp.float32)


def test_an_array_on_the_boundary_is_not_copied():
    array = at_offset(0, 15)
    assert aligned(array) is array


def test_an_empty_array_is_not_copied():
    array = cp.zeros((0, 3), dtype=cp.float32)
    assert aligned(array) is array


@pytest.mark.parametrize("offset", [4, 256, BOUNDARY - 4])
@pytest.mark.parametrize("shape", [(1,), (3, 5), (40, 50)])
def test_an_array_off_the_boundary_is_copied_onto_it(offset, shape):
    count = int(np.prod(shape))
    values = np.arange(1, count + 1, dtype=np.float32).reshape(shape)
    array = at_offset(offset, count).reshape(shape)
    array[...] = cp.asarray(values)
    assert array.data.ptr % BOUNDARY == offset
    copy = aligned(array)
    assert copy.data.ptr % BOUNDARY == 0 and copy.dtype == np.float32 and copy.flags.c_contiguous
    np.testing.assert_array_equal(cp.asnumpy(copy), values)
